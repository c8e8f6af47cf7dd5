import { isAlias, isMap, isScalar, type Pair, parseDocument, visit, type YAMLMap } from 'yaml';
import type { NarrowedAgent } from './narrowed-agents.js';

/** A range of the text and what replaces it. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export interface EditedConfiguration {
  readonly text: string;
  /** Unified, for `git apply -p0`; empty when nothing changes. */
  readonly diff: string;
  /** Agents whose entry cannot be edited where it stands: anchors and merged keys may belong to others. */
  readonly byHand: readonly string[];
}

/** Writes options of agents into the text of a configuration, and leaves everything else as it stands. */
export function editConfiguration(
  file: string,
  text: string,
  agents: readonly NarrowedAgent[],
): EditedConfiguration {
  const document = parseDocument(text);
  const entries = document.get('agents', true);
  const changed = agents.filter(({ narrowings }) => narrowings.length > 0);
  const edits: Edit[] = [];
  const byHand: string[] = [];
  for (const one of changed) {
    const found = isMap(entries) ? entries.items.find(({ key }) => keyText(key) === one.agent) : undefined;
    const own = found && listEdits(text, found, one, isQuoted(entries as YAMLMap));
    if (own) edits.push(...own);
    else byHand.push(one.agent);
  }
  edits.sort((one, other) => one.start - other.start);
  return { text: applyEdits(text, edits), diff: formatUnified(file, text, edits), byHand };
}

const keyText = (key: unknown): unknown => (isScalar(key) ? key.value : undefined);

/** Whether keys are written as in JSON. */
function isQuoted({ items }: YAMLMap): boolean {
  return items.length > 0 && items.every(({ key }) => isScalar(key) && key.type === 'QUOTE_DOUBLE');
}

const findRange = (node: unknown): readonly [number, number, number] | undefined =>
  (node as { range?: readonly [number, number, number] } | null)?.range ?? undefined;

const findAnchor = (node: unknown): string | undefined => (node as { anchor?: string } | null)?.anchor;

/** Whether an alias elsewhere may name the node, or a part of it. */
function hasAnchors(node: unknown): boolean {
  let found = false;
  visit(node as Parameters<typeof visit>[0], {
    Node: (_key, { anchor }) => {
      if (anchor === undefined) return undefined;
      found = true;
      return visit.BREAK;
    },
  });
  return found;
}

/** @returns undefined when the entry cannot be edited in its place */
function listEdits(
  text: string,
  { key, value }: Pair,
  { narrowings }: NarrowedAgent,
  quoted: boolean,
): Edit[] | undefined {
  const flow = (content: unknown) => (quoted ? JSON.stringify(content) : flowText(content));
  const writeOption = (option: string, content: unknown) =>
    `${quoted ? JSON.stringify(option) : option}: ${flow(content)}`;
  const options = narrowings.map(({ option, value: content }) => [option, content] as const);
  const entry = `{ ${options.map(([option, content]) => writeOption(option, content)).join(', ')} }`;
  const keyEnd = findRange(key)?.[1];
  if (keyEnd === undefined || isAlias(value) || findAnchor(value) !== undefined) return undefined;
  if (value === null || (isScalar(value) && value.value === null)) {
    const colon = text.indexOf(':', keyEnd) + 1;
    return [{ start: colon, end: Math.max(colon, findRange(value)?.[1] ?? colon), text: ` ${entry}` }];
  }
  if (!isMap(value)) return undefined;
  if (value.items.some((pair) => keyText(pair.key) === '<<' || isAlias(pair.value))) return undefined;
  const range = findRange(value);
  if (!range) return undefined;
  if (value.items.length === 0) return [{ start: range[0], end: range[1], text: entry }];
  const edits: Edit[] = [];
  const added: string[] = [];
  for (const [option, content] of options) {
    const present = value.items.find((pair) => isSameOption(keyText(pair.key), option));
    if (!present) {
      added.push(writeOption(option, content));
      continue;
    }
    if (hasAnchors(present.key) || hasAnchors(present.value)) return undefined;
    const start = findRange(present.key)?.[1];
    const end = findRange(present.value)?.[1];
    if (start === undefined || end === undefined) return undefined;
    edits.push({ start, end: trimEnd(text, end), text: `: ${flow(content)}` });
  }
  if (added.length > 0) {
    const [first] = value.items as [Pair, ...Pair[]];
    const at = findRange(first.key)?.[0];
    if (at === undefined) return undefined;
    const lineStart = text.lastIndexOf('\n', at - 1) + 1;
    const separator = value.flow ? ', ' : `\n${' '.repeat(at - lineStart)}`;
    edits.push({ start: at, end: at, text: added.map((line) => `${line}${separator}`).join('') });
  }
  return edits;
}

/** `permission` is another spelling of `permissions`. */
const isSameOption = (written: unknown, option: string): boolean =>
  written === option || (option === 'permissions' && written === 'permission');

/** The value of a block ends behind its last line break. */
function trimEnd(text: string, end: number): number {
  let at = end;
  while (at > 0 && /\s/.test(text[at - 1] as string)) at -= 1;
  return at;
}

/** YAML in one line, which can stand in a block as well. */
function flowText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[${value.map(flowText).join(', ')}]`;
  if (value !== null && typeof value === 'object')
    return `{ ${Object.entries(value)
      .map(([name, content]) => `${name}: ${flowText(content)}`)
      .join(', ')} }`;
  if (typeof value !== 'string') return String(value);
  return /^[A-Za-z_][\w-]*$/.test(value) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(value)
    ? value
    : JSON.stringify(value);
}

function applyEdits(text: string, edits: readonly Edit[]): string {
  let result = '';
  let at = 0;
  for (const { start, end, text: replacement } of edits) {
    result += text.slice(at, start) + replacement;
    at = end;
  }
  return result + text.slice(at);
}

const CONTEXT_LINES = 3;

/** Whole lines of the old text, from `first` to before `end`, and what replaces them. */
interface Hunk {
  first: number;
  end: number;
  lines: string[];
}

/** A unified diff; its hunks are the lines that edits touch. */
function formatUnified(file: string, text: string, edits: readonly Edit[]): string {
  if (edits.length === 0) return '';
  const old = text.split('\n');
  const ends = text.endsWith('\n');
  if (ends) old.pop();
  const starts = [0];
  for (const line of old) starts.push((starts.at(-1) as number) + line.length + 1);
  const findLine = (offset: number) => {
    let low = 0;
    let high = old.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] as number) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const touched: { first: number; end: number; edits: Edit[] }[] = [];
  for (const edit of edits) {
    const [first, end] = [findLine(edit.start), findLine(edit.end) + 1];
    const last = touched.at(-1);
    if (last && first < last.end) {
      last.end = Math.max(last.end, end);
      last.edits.push(edit);
    } else touched.push({ first, end, edits: [edit] });
  }
  const hunks = touched.map(({ first, end, edits: own }): Hunk => {
    const base = starts[first] as number;
    const part = old.slice(first, end).join('\n');
    const moved = own.map((edit) => ({ ...edit, start: edit.start - base, end: edit.end - base }));
    return { first, end, lines: applyEdits(part, moved).split('\n') };
  });
  const lines = [`--- ${file}`, `+++ ${file}`];
  let shift = 0;
  for (let index = 0; index < hunks.length;) {
    const group = [hunks[index] as Hunk];
    while (
      hunks[index + group.length] &&
      (hunks[index + group.length] as Hunk).first - (group.at(-1) as Hunk).end <= 2 * CONTEXT_LINES
    )
      group.push(hunks[index + group.length] as Hunk);
    const from = Math.max(0, (group[0] as Hunk).first - CONTEXT_LINES);
    const to = Math.min(old.length, (group.at(-1) as Hunk).end + CONTEXT_LINES);
    const body: string[] = [];
    let at = from;
    let grown = 0;
    for (const { first, end, lines: replaced } of group) {
      body.push(...old.slice(at, first).map((line) => ` ${line}`));
      body.push(...difference(old.slice(first, end), replaced));
      grown += replaced.length - (end - first);
      at = end;
    }
    body.push(...old.slice(at, to).map((line) => ` ${line}`));
    lines.push(`@@ -${from + 1},${to - from} +${from + 1 + shift},${to - from + grown} @@`, ...body);
    if (to === old.length && !ends) lines.push('\\ No newline at end of file');
    shift += grown;
    index += group.length;
  }
  return `${lines.join('\n')}\n`;
}

/** Lines that stay at the end of what was replaced are not shown as changed. */
function difference(before: readonly string[], after: readonly string[]): string[] {
  let same = 0;
  while (same < before.length && same < after.length && before.at(-1 - same) === after.at(-1 - same))
    same += 1;
  const gone = before.slice(0, before.length - same).map((line) => `-${line}`);
  const come = after.slice(0, after.length - same).map((line) => `+${line}`);
  return [...gone, ...come, ...before.slice(before.length - same).map((line) => ` ${line}`)];
}
