import type { ParseRow } from '#data';
import { printedAtMost } from './printed-size.js';

const SAMPLE = 5;

/** Members that a row keeps whatever it weighs: its identity, its times and where it came from. */
const NEVER_DROPPED = new Set(['objectId', 'createdAt', 'updatedAt', '_id', '_source']);

export interface FieldWeight {
  readonly field: string;
  /** Average serialised size of the values, over the sampled rows. */
  readonly bytesPerRow: number;
}

export const isRow = (value: unknown): value is ParseRow =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Characters that are printed to weigh a value; one that may have more weighs this. */
const HEAVIEST = 64 * 1024 * 1024;

export function byteLength(value: unknown): number {
  if (printedAtMost(value, HEAVIEST) > HEAVIEST) return HEAVIEST;
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}

/** The first rows: enough to tell which field is heavy, few enough to be cheap on a huge result. */
export function sampleOf(rows: readonly unknown[]): readonly ParseRow[] {
  return rows.slice(0, SAMPLE).filter(isRow);
}

/** Fields of the sampled rows, the heaviest first; equal ones by name. */
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

/** The field to leave out first, or null when rows hold nothing that may be left out. */
export function heaviestField(weights: readonly FieldWeight[]): string | null {
  return weights.find(({ field }) => !NEVER_DROPPED.has(field))?.field ?? null;
}

export function withoutField(row: unknown, field: string | null): unknown {
  if (field === null || !isRow(row)) return row;
  return Object.fromEntries(Object.entries(row).filter(([key]) => key !== field));
}
