import type { SealedLine } from '../chain/audit-chain.js';

/** Gates that refuse a caller as fast as it calls. */
const FAST_GATES: readonly unknown[] = ['rate_limit', 'audit'];
/** Records of such refusals of one principal that wait at once. */
const MAX_WAITING = 500;

type Members = Readonly<Record<string, unknown>>;

function findOwner({ gate, principal, success }: Members): string | undefined {
  const isRefusal = success === false && FAST_GATES.includes(gate);
  return isRefusal && typeof principal === 'string' ? principal : undefined;
}

/**
 * The refusals that wait for a destination, by principal. A caller that does not wait for its turn would otherwise fill the queue with
 * them, and the records of all others would be late or lost.
 */
export class WaitingRefusals {
  private readonly waiting = new Map<string, number>();

  /** @param most of one principal */
  constructor(private readonly most = MAX_WAITING) {}

  /** Whether a record has no place, because as many of its kind and principal wait. */
  isExcess(content: object): boolean {
    const owner = findOwner(content as Members);
    return owner !== undefined && (this.waiting.get(owner) ?? 0) >= this.most;
  }

  add({ record }: SealedLine): void {
    const owner = findOwner(record);
    if (owner !== undefined) this.waiting.set(owner, (this.waiting.get(owner) ?? 0) + 1);
  }

  /** Of an earlier process are others, which were not counted. */
  remove(records: readonly SealedLine[]): void {
    for (const { record } of records) {
      const owner = findOwner(record);
      if (owner === undefined) continue;
      const left = (this.waiting.get(owner) ?? 0) - 1;
      if (left > 0) this.waiting.set(owner, left);
      else this.waiting.delete(owner);
    }
  }
}
