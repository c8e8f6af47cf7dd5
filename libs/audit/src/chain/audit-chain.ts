import { randomBytes } from 'node:crypto';
import type { ChainHead } from '../audit-event.js';
import { NOTHING_BEFORE, type RecordSeal, type SealedLine } from './record-seal.js';

/** The records of one process in their order, each sealed together with the one before. */
export class AuditChain {
  /** Told by nobody but this process: 96 random bits. */
  readonly id = randomBytes(12).toString('hex');
  private next = 0;
  private last = NOTHING_BEFORE;

  constructor(private readonly seal: RecordSeal) {}

  /** Counts a record that is not sealed: none of its chain may be. */
  place<Content extends object>(
    content: Content,
  ): Content & { readonly chain: string; readonly seq: number } {
    const placed = { ...content, chain: this.id, seq: this.next };
    this.next += 1;
    return placed;
  }

  append(
    content: Readonly<Record<string, unknown>> & { readonly at: string; readonly type: string },
  ): SealedLine {
    const sealed = this.seal.seal({ ...content, chain: this.id, seq: this.next, prev: this.last });
    this.next += 1;
    this.last = sealed.record.hash;
    return sealed;
  }

  /** Null before the first record. */
  get head(): ChainHead | null {
    return this.next === 0 ? null : { chain: this.id, seq: this.next - 1, hash: this.last };
  }
}
