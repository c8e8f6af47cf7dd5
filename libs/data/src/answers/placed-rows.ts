import { type ParseRow, StoreError, type StoreName } from '../record-store.js';
import type { AnswerLeft } from './answer-limits.js';
import { valueWeight } from './value-weight.js';

/**
 * Rows that were read once and stand in an answer as often as pointers lead to them: from the second time on, each place
 * counts against the bytes of the answer.
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
