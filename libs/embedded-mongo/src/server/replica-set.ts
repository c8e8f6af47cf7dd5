import { mongoError } from '../errors.js';

/** How long a set has no primary after a step-down, in milliseconds. */
const ELECTION_MS = 200;

/**
 * The members of the replica set and which of them is the primary. All members have the same data: they are addresses of one
 * server, so that a test can have another primary without copying anything.
 */
export class ReplicaSet {
  /** `host:port` of each member, or the socket path, once the server listens. */
  addresses: readonly string[] = [''];
  /** Counts the elections. */
  private currentTerm = 1;
  private elected = 0;
  private electedAt = 0;
  /** When each member may be elected again, in epoch milliseconds. */
  private readonly barredUntil: number[];

  constructor(
    /** Name of the set; undefined for a standalone. */
    readonly name: string | undefined,
    readonly size: number,
    private readonly now: () => number = Date.now,
  ) {
    this.barredUntil = Array.from({ length: size }, () => 0);
  }

  get term(): number {
    return this.currentTerm;
  }

  /** The member that takes writes; undefined until the next election. */
  get primary(): number | undefined {
    return this.now() >= this.electedAt ? this.elected : undefined;
  }

  findAddress(member: number): string {
    return this.addresses[member] ?? '';
  }

  /**
   * Makes another member the primary, after a moment without any. The only member of a set becomes primary again after `seconds`.
   * Errors: 76 on a standalone, 10107 when the member is not the primary.
   */
  stepDown(member: number, seconds: number): void {
    if (this.name === undefined) throw mongoError(76, 'not running with --replSet');
    if (this.primary !== member) throw mongoError(10107, "not primary so can't step down");
    const now = this.now();
    this.barredUntil[member] = now + seconds * 1000;
    const others = this.addresses.map((_, place) => (member + 1 + place) % this.size);
    const free = (place: number): number => this.barredUntil[place] ?? 0;
    const next = others.reduce((best, place) =>
      Math.max(free(place), now) < Math.max(free(best), now) ? place : best,
    );
    this.elected = next;
    this.electedAt = Math.max(now + ELECTION_MS, free(next));
    this.currentTerm += 1;
  }
}
