import { isDocument, type Document } from '../../bson/document.js';

/** Conditions whose answer does not depend on the document alone, or that have a place of their own. */
const FIXED_OPERATORS = new Set(
  '$text $where $near $nearSphere $geoNear $sampleRate $rand $meta $comment'.split(' '),
);

/** The paths that a filter looks at; null when it looks at documents as a whole, or has to stay where it is. */
export function collectPaths(filter: unknown): ReadonlySet<string> | null {
  const paths = new Set<string>();
  return collectFilter(filter, paths) ? paths : null;
}

/** Whether a filter may stand beside another one in one `$and`. */
export function mayMerge(filter: unknown): boolean {
  if (Array.isArray(filter)) return filter.every(mayMerge);
  return (
    !isDocument(filter) ||
    Object.entries(filter).every(([key, value]) => !FIXED_OPERATORS.has(key) && mayMerge(value))
  );
}

/** The conditions that must all hold, each a filter of its own. */
export function listConjuncts(filter: Document): Document[] {
  return Object.entries(filter).flatMap(([key, value]) =>
    key === '$and' && Array.isArray(value) && value.every(isDocument)
      ? value.flatMap(listConjuncts)
      : [{ [key]: value }],
  );
}

export const conjunction = (parts: readonly Document[]): Document =>
  parts.length === 1 ? (parts[0] as Document) : { $and: [...parts] };

/** Whether a change of one path may change what is found at the other. Positions in arrays are no names. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [dropIndexes(one), dropIndexes(other)];
  return a === b || a.startsWith(`${b}.`) || b.startsWith(`${a}.`);
}

export const hasPosition = (path: string): boolean => /(^|\.)\d+(\.|$)/.test(path);

const dropIndexes = (path: string): string =>
  path
    .split('.')
    .filter((part) => !/^\d+$/.test(part))
    .join('.');

function collectFilter(filter: unknown, into: Set<string>): boolean {
  if (!isDocument(filter)) return false;
  return Object.entries(filter).every(([key, value]) => {
    if (key === '$and' || key === '$or' || key === '$nor')
      return Array.isArray(value) && value.every((branch) => collectFilter(branch, into));
    if (key === '$expr') return collectExpression(value, into);
    if (key.startsWith('$') || !mayMerge(value)) return false;
    into.add(key);
    return true;
  });
}

function collectExpression(expression: unknown, into: Set<string>): boolean {
  if (typeof expression === 'string') {
    const [, root, , path] = /^\$\$(ROOT|CURRENT)(\.(.+))?$/s.exec(expression) ?? [];
    if (root !== undefined && path === undefined) return false;
    if (path !== undefined) into.add(path);
    else if (expression.startsWith('$') && !expression.startsWith('$$')) into.add(expression.slice(1));
    return true;
  }
  if (Array.isArray(expression)) return expression.every((part) => collectExpression(part, into));
  if (!isDocument(expression)) return true;
  return Object.entries(expression).every(([key, value]) => {
    if (key === '$literal') return true;
    return key !== '$getField' && !FIXED_OPERATORS.has(key) && collectExpression(value, into);
  });
}
