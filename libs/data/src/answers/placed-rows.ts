import { type ParseRow, StoreError, type StoreName } from '../record-store.js';
import { type AnswerLeft, MIN_VALUE_BYTES } from './answer-memory.js';

/**
 * Bytes that a JSON value counts for: its texts and names, where each value has at least `MIN_VALUE_BYTES`. A value that
 * occurs in several places counts in each of them.
 * @param most where counting ends: the result for a larger value is any number above it
 */
export function valueWeight(value: unknown, most = Infinity): number {
  if (typeof value === 'string') return Math.max(value.length, MIN_VALUE_BYTES);
  let weight = MIN_VALUE_BYTES;
  if (value === null || typeof value !== 'object') return weight;
  if (Array.isArray(value)) {
    for (const member of value) {
      if (weight > most) return weight;
      weight += valueWeight(member, most - weight);
    }
    return weight;
  }
  for (const name in value) {
    if (weight > most) return weight;
    weight += name.length + valueWeight((value as Record<string, unknown>)[name], most - weight);
  }
  return weight;
}

/**
 * Rows that were read once and occur in an answer once per pointer to them: from the second occurrence on, each counts
 * against the bytes of the answer.
 */
export class PlacedRows {
  private readonly rows = new Map<string, { readonly row: ParseRow; weight?: number }>();

  constructor(
    private readonly left: AnswerLeft,
    private readonly store: StoreName = 'the database',
  ) {}

  add(objectId: string, row: ParseRow): void {
    this.rows.set(objectId, { row });
  }

  /** @throws StoreError `too_large` */
  place(objectId: string): ParseRow | undefined {
    const found = this.rows.get(objectId);
    if (!found) return undefined;
    if (found.weight === undefined) found.weight = valueWeight(found.row);
    else this.left.bytes -= found.weight;
    if (this.left.bytes < 0) throw new StoreError('too_large', { store: this.store });
    return found.row;
  }
}
