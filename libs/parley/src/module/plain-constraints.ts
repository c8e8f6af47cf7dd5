import type { Where } from '#policy';

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Columns of the row itself: what is dotted or begins with `$` is left to whoever reads. */
const isColumn = (name: string) => /^[A-Za-z][A-Za-z0-9_]*$/.test(name);

/** Every condition that a row has to meet, those of `$and` among them. */
function* conditionsOf(where: Where): Generator<readonly [name: string, condition: unknown]> {
  for (const [name, condition] of Object.entries(where)) {
    if (name === '$and' && Array.isArray(condition))
      for (const part of condition as unknown[]) yield* isObject(part) ? conditionsOf(part) : [];
    else if (isColumn(name)) yield [name, condition];
  }
}

/** A value as it can be compared; undefined: only the store can tell. */
function plain(value: unknown): string | undefined {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return JSON.stringify(value);
  if (!isObject(value) || value['__type'] !== 'Pointer') return undefined;
  return JSON.stringify(['Pointer', value['className'], value['objectId']]);
}

/** The values of which a column must have one; null: it says nothing of the kind. */
function admittedBy(condition: unknown): ReadonlySet<string> | null {
  const isOperator = isObject(condition) && Object.keys(condition).some((name) => name.startsWith('$'));
  const listed: unknown = isOperator
    ? (condition['$in'] ?? ('$eq' in condition ? [condition['$eq']] : null))
    : [condition];
  if (!Array.isArray(listed)) return null;
  const values = listed.map(plain);
  return values.every((value) => value !== undefined) ? new Set(values as string[]) : null;
}

/** Columns that a row can be held against `where` by. */
export function comparedColumns(where: Where): string[] {
  return [...conditionsOf(where)].flatMap(([name, condition]) => (admittedBy(condition) ? [name] : []));
}

/**
 * Whether a row cannot be one that `where` admits. Equality alone is looked at, which is how a tenant and an id are said: for
 * anything else whoever reads is believed.
 */
export function contradicts(row: Readonly<Record<string, unknown>>, where: Where): boolean {
  for (const [name, condition] of conditionsOf(where)) {
    const admitted = admittedBy(condition);
    if (admitted && !hasOne(row[name], admitted)) return true;
  }
  return false;
}

/** A list has a value that is one of its entries; a column that is not there is null. */
function hasOne(value: unknown, admitted: ReadonlySet<string>): boolean {
  const values: unknown[] = Array.isArray(value) ? value : [value ?? null];
  return values.some((one) => {
    const told =
      isObject(one) && one['__type'] === 'Object' ? plain({ ...one, __type: 'Pointer' }) : plain(one);
    return told !== undefined && admitted.has(told);
  });
}
