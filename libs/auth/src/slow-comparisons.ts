import { createHmac, randomBytes } from 'node:crypto';
import { FairTurns, NoTurn } from '#agent';
import { AuthenticationUnavailable } from './authentication-faults.js';
import { isKeyOf, type SlowKeyHash } from './key-hash.js';

/** Verdicts remembered of each sort; the one that was asked for longest ago gives way. */
const MAX_KNOWN = 1_000;

/** Slow comparisons at once in this process: more would starve everything else that uses its threads. */
const UNKNOWN_KEYS = { atOnce: 2, waitingPerKey: 64, waiting: 512, patience: 10_000 };
/** Keys that another rule knows are few, and do not wait behind unknown ones. */
const VOUCHED_KEYS = { atOnce: 1, waitingPerKey: 1_000, patience: 10_000 };

/** Who asks for a comparison. */
export interface ComparisonOrder {
  /** Whose turn it takes: callers of one network wait for each other. */
  readonly network: string;
  /** Another rule knows the key. */
  readonly vouched: boolean;
}

/**
 * Compares keys with slow hashes, for all rules of the process: each pair once, few at a time, the networks that wait in turn.
 * Right keys, and wrong ones that another rule knows, stay known however many others are tried.
 */
export class SlowComparisons {
  private readonly unknown = new FairTurns(UNKNOWN_KEYS);
  private readonly known = new FairTurns(VOUCHED_KEYS);
  private readonly right = new Map<string, boolean>();
  private readonly vouchedWrong = new Map<string, boolean>();
  private readonly wrong = new Map<string, boolean>();
  private readonly underWay = new Map<string, Promise<boolean>>();
  /** Of this process: the names of the pairs are of no use elsewhere. */
  private readonly secret = randomBytes(32);

  /** @param compare slow. Default: the derivation of the hash */
  constructor(private readonly compare: (key: string, hash: SlowKeyHash) => Promise<boolean> = isKeyOf) {}

  /** Whether the verdict is remembered. */
  isKnown(key: string, hash: SlowKeyHash): boolean {
    return this.recalled(this.nameOf(key, hash)) !== undefined;
  }

  /** @throws AuthenticationUnavailable when too many unknown keys wait */
  async fits(key: string, hash: SlowKeyHash, order: ComparisonOrder): Promise<boolean> {
    const name = this.nameOf(key, hash);
    const before = this.recalled(name);
    if (before !== undefined) return before;
    // The same key from several callers is one comparison; one that others wait for does not hold up a vouched one.
    const lane = `${order.vouched}:${name}`;
    let comparing = this.underWay.get(lane);
    if (!comparing) {
      comparing = this.compared(key, hash, order).finally(() => this.underWay.delete(lane));
      this.underWay.set(lane, comparing);
    }
    const verdict = await comparing;
    remember(verdict ? this.right : order.vouched ? this.vouchedWrong : this.wrong, name, verdict);
    return verdict;
  }

  private async compared(key: string, hash: SlowKeyHash, order: ComparisonOrder): Promise<boolean> {
    const turns = order.vouched ? this.known : this.unknown;
    try {
      return await turns.run(order.network, () => this.compare(key, hash));
    } catch (error) {
      if (error instanceof NoTurn) throw new AuthenticationUnavailable('too many unknown keys at once');
      throw error;
    }
  }

  private recalled(name: string): boolean | undefined {
    return this.right.get(name) ?? this.vouchedWrong.get(name) ?? this.wrong.get(name);
  }

  private nameOf(key: string, { salt, hash }: SlowKeyHash): string {
    return createHmac('sha256', this.secret).update(salt).update(hash).update(key, 'utf8').digest('base64');
  }
}

function remember(verdicts: Map<string, boolean>, name: string, verdict: boolean): void {
  verdicts.delete(name);
  verdicts.set(name, verdict);
  const oldest = verdicts.size > MAX_KNOWN ? verdicts.keys().next().value : undefined;
  if (oldest !== undefined) verdicts.delete(oldest);
}

/** Those of this process. */
export const slowComparisons = new SlowComparisons();
