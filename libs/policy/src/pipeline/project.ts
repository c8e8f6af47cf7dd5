import { rootOf } from '../model/field-names.js';
import { isPlainObject, type PlainObject } from '../model/where.js';
import { resolveExpression } from './expression.js';
import type { Frame, Introduced } from './frame.js';

/** What one member of a `$project` does, as the database reads it. */
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

/** A `$project` that only leaves columns out keeps the documents it was given. */
export function keepsSource(project: unknown): boolean {
  return isPlainObject(project) && excludesOnly(project);
}

/** Inclusions are judged by their root, computed values as expressions; exclusions name what may not even be there. */
export function resolveProject(project: PlainObject, frame: Frame): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(project).map(([path, value]) => {
      const kind = kindOf(value);
      if (kind === 'include') return [frame.resolve(path, '$project key'), value];
      if (kind === 'exclude') return [frame.spell(path), value];
      if (kind === 'compute') return [path, resolveExpression(value, frame)];
      if (excludesOnly(value as PlainObject)) return [frame.spell(path), value];
      return [nestedKey(path, value as PlainObject, frame), resolveNested(value as PlainObject, frame)];
    }),
  );
}

/** The roots a `$project` leaves in the document, under the caller's spelling and their own. */
export function projectedNames(project: PlainObject, frame: Frame): Introduced {
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

/** `{ profile: { city: 1 } }` reads the column `profile`; `{ stats: { total: "$x" } }` makes a new one. */
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

/** What documents are after `$replaceRoot` or `$replaceWith`. */
export interface NewRoot {
  /** The documents stay what they were. */
  readonly same: boolean;
  /** Names that the expression writes out. */
  readonly names: readonly string[];
  /** Members that nobody can list come from a value: a column, a joined row, pairs. */
  readonly open: boolean;
}

const OPEN: NewRoot = { same: false, names: [], open: true };

/** Read off the expression alone; every reference in it is judged elsewhere. */
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
