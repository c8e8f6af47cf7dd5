/** By a projection in wire names: the names that a caller wrote in it, by the field that each of them means. */
const written = new WeakMap<object, ReadonlyMap<string, readonly string[]>>();

const NO_NAMES: ReadonlyMap<string, readonly string[]> = new Map();

/** Of a projection that no caller wrote: rows that pass it keep the names that they have. */
export function nameNothing<T extends object>(projection: T): T {
  written.set(projection, NO_NAMES);
  return projection;
}

/** @param fields what each name of the caller means */
export function nameAsWritten<T extends object>(projection: T, fields: ReadonlyMap<string, string>): T {
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
