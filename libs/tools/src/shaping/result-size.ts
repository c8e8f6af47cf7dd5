import type { ParseRow } from '#data';

/** Maximum bytes of one result as pretty-printed JSON. */
export const MAX_RESULT_BYTES = 4_194_304;

/** Maximum growth factor of a text in JSON: a control character becomes six characters. */
const ESCAPED = 6;
/** Line break, quotes, colon, comma and the longest number. */
const PER_VALUE = 32;

/**
 * An upper bound of a value's pretty-printed JSON in characters, without printing it: a shared value counts at each
 * place, and every nesting level is indented.
 * @param most counting stops here: a larger value returns any number above it
 */
export function printedAtMost(value: unknown, most: number, depth = 0): number {
  if (typeof value === 'string') return value.length * ESCAPED + PER_VALUE + depth * 2;
  let size = PER_VALUE + depth * 4;
  if (value === null || typeof value !== 'object') return size;
  if (Array.isArray(value)) {
    for (const member of value) {
      if (size > most) return size;
      size += printedAtMost(member, most - size, depth + 1);
    }
    return size;
  }
  for (const name in value) {
    if (size > most) return size;
    size +=
      name.length * ESCAPED + printedAtMost((value as Record<string, unknown>)[name], most - size, depth + 1);
  }
  return size;
}

const SAMPLE = 5;

/** Members that a row always keeps: its identity, its times and its origin. */
const NEVER_DROPPED = new Set(['objectId', 'createdAt', 'updatedAt', '_id', '_source']);

export interface FieldWeight {
  readonly field: string;
  /** Average serialised size of the values, over the sampled rows. */
  readonly bytesPerRow: number;
}

export const isRow = (value: unknown): value is ParseRow =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Maximum characters that are printed to weigh a value; a value that may be larger weighs this. */
const HEAVIEST = 64 * 1024 * 1024;

export function byteLength(value: unknown): number {
  if (printedAtMost(value, HEAVIEST) > HEAVIEST) return HEAVIEST;
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}

/** The first rows: enough to find the heavy field, few enough to be cheap on a huge result. */
export function sampleOf(rows: readonly unknown[]): readonly ParseRow[] {
  return rows.slice(0, SAMPLE).filter(isRow);
}

/** Fields of the sampled rows, heaviest first; equal ones by name. */
export function weighFields(rows: readonly unknown[]): readonly FieldWeight[] {
  const sample = sampleOf(rows);
  const bytes = new Map<string, number>();
  for (const row of sample)
    for (const [field, value] of Object.entries(row))
      bytes.set(field, (bytes.get(field) ?? 0) + byteLength(value));
  return [...bytes]
    .map(([field, total]) => ({ field, bytesPerRow: total / sample.length }))
    .sort((a, b) => b.bytesPerRow - a.bytesPerRow || (a.field < b.field ? -1 : 1));
}

/** The field to leave out first, or null when the rows have no removable field. */
export function heaviestField(weights: readonly FieldWeight[]): string | null {
  return weights.find(({ field }) => !NEVER_DROPPED.has(field))?.field ?? null;
}

export function withoutField(row: unknown, field: string | null): unknown {
  if (field === null || !isRow(row)) return row;
  return Object.fromEntries(Object.entries(row).filter(([key]) => key !== field));
}
