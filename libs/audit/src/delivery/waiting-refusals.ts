import type { SealedLine } from '../chain/audit-chain.js';

/** Refused calls of one principal that did nothing, and whose records wait at once. */
const MAX_WAITING = 500;

function findOwner({ principal, success }: Readonly<Record<string, unknown>>): string | undefined {
  return success === false && typeof principal === 'string' ? principal : undefined;
}

/**
 * The refusals of calls that had not begun, and that wait for a destination, by principal. Whichever gate refuses a caller that does not
 * wait for its turn, they would otherwise fill the queue, and the records of all others would be late or lost.
 */
export class WaitingRefusals {
  private readonly waiting = new Map<string, number>();
  /** The principals of the counted records, by hash: one that comes back from disk is another object. */
  private readonly owners = new Map<string, string>();

  /** @param most of one principal */
  constructor(private readonly most = MAX_WAITING) {}

  /** Whether such a record has no place, because as many of its principal wait. */
  isExcess(content: object): boolean {
    const owner = findOwner(content as Readonly<Record<string, unknown>>);
    return owner !== undefined && (this.waiting.get(owner) ?? 0) >= this.most;
  }

  add({ record }: SealedLine): void {
    const owner = findOwner(record);
    if (owner === undefined) return;
    this.owners.set(record.hash, owner);
    this.waiting.set(owner, (this.waiting.get(owner) ?? 0) + 1);
  }

  /** None waits: those that were not removed are lost. */
  clear(): void {
    this.owners.clear();
    this.waiting.clear();
  }

  /** Other records, and those of an earlier process, were not counted. */
  remove(records: readonly SealedLine[]): void {
    for (const { record } of records) {
      const owner = this.owners.get(record.hash);
      if (owner === undefined) continue;
      this.owners.delete(record.hash);
      const left = (this.waiting.get(owner) ?? 0) - 1;
      if (left > 0) this.waiting.set(owner, left);
      else this.waiting.delete(owner);
    }
  }
}
