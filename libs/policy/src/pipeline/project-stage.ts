import { takeRoot } from '../model/field-names.js';
import type { ValueType } from '../model/value-type.js';
import { isPlainObject, type PlainObject } from '../model/where.js';
import { resolveExpression } from './expression.js';
import { typeOfExpression } from './expression-types.js';
import type { Frame, Outcome } from './frame.js';
import { noteConstant } from './unlikely-operands.js';

/** By a projection in wire names: the names that a caller wrote in it, by the field that each of them means. */
const written = new WeakMap<object, ReadonlyMap<string, readonly string[]>>();

const NO_NAMES: ReadonlyMap<string, readonly string[]> = new Map();

/** Of a projection that no caller wrote: rows that pass it keep the names that they have. */
export function nameNothing<T extends object>(projection: T): T {
  written.set(projection, NO_NAMES);
  return projection;
}

/** @param fields what each name of the caller means */
function nameAsWritten<T extends object>(projection: T, fields: ReadonlyMap<string, string>): T {
  const names = new Map<string, string[]>();
  for (const [name, field] of fields) names.set(field, [...(names.get(field) ?? []), name]);
  written.set(projection, names);
  return projection;
}

/** The names under which the rows of a projection carry a field; none: the name that the row has. */
export function listProjectedNames(projection: object, field: string): readonly string[] {
  const names = written.get(projection);
  return names ? (names.get(field) ?? []) : [field];
}

/** What the database does with one member of a `$project`. */
type Member = 'include' | 'exclude' | 'nested' | 'compute';

function findKind(value: unknown): Member {
  if (value === false || value === 0) return 'exclude';
  if (value === true || typeof value === 'number') return 'include';
  if (!isPlainObject(value) || Object.keys(value).length === 0) return 'compute';
  return Object.keys(value).some((key) => key.startsWith('$')) ? 'compute' : 'nested';
}

/** Whether a member, or each inside it, is left out of the documents. */
function isExcluded(value: unknown): boolean {
  const kind = findKind(value);
  return kind === 'exclude' || (kind === 'nested' && excludesOnly(value as PlainObject));
}

/** A `$project` that only excludes columns keeps the source documents. */
const excludesOnly = (project: PlainObject): boolean => Object.values(project).every(isExcluded);

/** Checks inclusions by their root and computed values as expressions; exclusions need no check. */
export function resolveProject(project: PlainObject, frame: Frame): Record<string, unknown> {
  const resolved = Object.entries(project).map(([path, value]): [string, unknown] => {
    const kind = findKind(value);
    if (kind === 'include') return [frame.resolve(path, '$project key'), value];
    if (isExcluded(value)) return [frame.resolveUnchecked(path), value];
    if (typeof value === 'string') noteConstant(value, frame);
    if (kind === 'compute') return [path, resolveExpression(value, frame)];
    return [resolveNestedKey(path, value as PlainObject, frame), resolveNested(value as PlainObject, frame)];
  });
  const roots = Object.keys(project).map((path, index) => {
    const [field = ''] = resolved[index] ?? [];
    return [takeRoot(path), takeRoot(field)] as const;
  });
  return nameAsWritten(Object.fromEntries(resolved), new Map(roots));
}

/** The names that a `$project` leaves, in the spelling of the caller and as in the document; what it includes keeps its type. */
export function projectDocuments(project: PlainObject, frame: Frame): Outcome {
  const names = new Map<string, string>();
  const types = new Map<string, ValueType | undefined>();
  for (const [path, value] of Object.entries(project)) {
    if (isExcluded(value)) continue;
    const kind = findKind(value);
    const root = takeRoot(path);
    const isRead = kind === 'include' || (kind === 'nested' && includesSomething(value as PlainObject));
    const held = isRead ? frame.resolve(root, '$project key') : root;
    names.set(root, held);
    names.set(held, held);
    if (kind === 'include') types.set(held, frame.findType(root, true));
    if (kind === 'compute') types.set(root, path === root ? typeOfExpression(value, frame) : undefined);
  }
  // Included unless it is excluded.
  if (!types.has('_id')) types.set('_id', frame.findType('_id', true));
  return { introduces: names, types, replacesSource: !excludesOnly(project) };
}

/** `{ profile: { city: 1 } }` reads the column `profile`; `{ stats: { total: "$x" } }` creates a field. */
function resolveNestedKey(path: string, value: PlainObject, frame: Frame): string {
  return includesSomething(value) ? frame.resolve(path, '$project key') : path;
}

function includesSomething(value: PlainObject): boolean {
  return Object.values(value).some((member) => {
    const kind = findKind(member);
    return kind === 'include' || (kind === 'nested' && includesSomething(member as PlainObject));
  });
}

function resolveNested(value: PlainObject, frame: Frame): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const kind = findKind(member);
      if (kind === 'compute') return [key, resolveExpression(member, frame)];
      return [key, kind === 'nested' ? resolveNested(member as PlainObject, frame) : member];
    }),
  );
}
