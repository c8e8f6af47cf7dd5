import { rootOf } from '../model/field-names.js';
import { isPlainObject, type PlainObject } from '../model/where.js';
import { resolveExpression } from './expression.js';
import type { Frame, AddedFields } from './frame.js';

/** What the database does with one member of a `$project`. */
type Member = 'include' | 'exclude' | 'nested' | 'compute';

function kindOf(value: unknown): Member {
  if (value === false || value === 0) return 'exclude';
  if (value === true || typeof value === 'number') return 'include';
  if (!isPlainObject(value) || Object.keys(value).length === 0) return 'compute';
  return Object.keys(value).some((key) => key.startsWith('$')) ? 'compute' : 'nested';
}

function excludesOnly(project: PlainObject): boolean {
  return Object.values(project).every((value) => {
    const kind = kindOf(value);
    return kind === 'exclude' || (kind === 'nested' && excludesOnly(value as PlainObject));
  });
}

/** Whether a `$project` only excludes columns and so keeps the source documents. */
export function keepsSource(project: unknown): boolean {
  return isPlainObject(project) && excludesOnly(project);
}

/** Checks inclusions by their root and computed values as expressions; exclusions need no check. */
export function resolveProject(project: PlainObject, frame: Frame): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(project).map(([path, value]) => {
      const kind = kindOf(value);
      if (kind === 'include') return [frame.resolve(path, '$project key'), value];
      if (kind === 'exclude') return [frame.resolveUnchecked(path), value];
      if (kind === 'compute') return [path, resolveExpression(value, frame)];
      if (excludesOnly(value as PlainObject)) return [frame.resolveUnchecked(path), value];
      return [nestedKey(path, value as PlainObject, frame), resolveNested(value as PlainObject, frame)];
    }),
  );
}

/** The roots that a `$project` leaves in the document, in the spelling of the caller and as in the document. */
export function projectedNames(project: PlainObject, frame: Frame): AddedFields {
  const names = new Map<string, string>();
  for (const [path, value] of Object.entries(project)) {
    const kind = kindOf(value);
    if (kind === 'exclude' || (kind === 'nested' && excludesOnly(value as PlainObject))) continue;
    const root = rootOf(path);
    const included = kind === 'include' || (kind === 'nested' && includesSomething(value as PlainObject));
    const held = included ? frame.resolve(root, '$project key') : root;
    names.set(root, held);
    names.set(held, held);
  }
  return names;
}

/** `{ profile: { city: 1 } }` reads the column `profile`; `{ stats: { total: "$x" } }` creates a field. */
function nestedKey(path: string, value: PlainObject, frame: Frame): string {
  return includesSomething(value) ? frame.resolve(path, '$project key') : path;
}

function includesSomething(value: PlainObject): boolean {
  return Object.values(value).some((member) => {
    const kind = kindOf(member);
    return kind === 'include' || (kind === 'nested' && includesSomething(member as PlainObject));
  });
}

function resolveNested(value: PlainObject, frame: Frame): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const kind = kindOf(member);
      if (kind === 'compute') return [key, resolveExpression(member, frame)];
      return [key, kind === 'nested' ? resolveNested(member as PlainObject, frame) : member];
    }),
  );
}

/** The documents after `$replaceRoot` or `$replaceWith`. */
interface NewRoot {
  /** The documents are unchanged. */
  readonly same: boolean;
  /** The fields that the expression lists. */
  readonly names: readonly string[];
  /** Whether further fields come from a value: a column, a joined row, pairs. */
  readonly open: boolean;
}

const OPEN: NewRoot = { same: false, names: [], open: true };

/** Determined from the expression alone; its references are checked by `resolveExpression`. */
export function newRootOf(expression: unknown): NewRoot {
  if (expression === '$$ROOT' || expression === '$$CURRENT') return { same: true, names: [], open: false };
  if (!isPlainObject(expression)) return OPEN;
  const keys = Object.keys(expression);
  if (!keys.some((key) => key.startsWith('$'))) return { same: false, names: keys.map(rootOf), open: false };
  const merged = keys.length === 1 ? expression['$mergeObjects'] : undefined;
  if (!Array.isArray(merged)) return OPEN;
  const parts = merged.map(newRootOf);
  return {
    same: false,
    names: parts.flatMap(({ names }) => names),
    open: parts.some(({ same, open }) => same || open),
  };
}
