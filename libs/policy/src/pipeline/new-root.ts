import { rootOf } from '../model/field-names.js';
import { isPlainObject } from '../model/plain-object.js';

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
