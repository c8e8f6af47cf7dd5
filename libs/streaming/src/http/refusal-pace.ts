/**
 * A refusal of a caller over its limit says when to call again. A caller that does not wait makes the process refuse as fast as it
 * calls, and delays every other caller. So these refusals leave at a pace (docs/reference/limits.md#callers-that-do-not-wait,
 * docs/contributing/decisions/0030-pace-of-refusals.md).
 */

/** Milliseconds between two refusals of one principal. */
const REFUSAL_INTERVAL = 100;
/** Refusals of one principal that need not wait, as those of calls that it made at once. */
const MAX_BURST = 20;
/** Milliseconds that a refusal waits at most. */
const MAX_DELAY = 5_000;
/** Refusals that wait at once, of one principal and of all. Any other is sent at once. */
const MAX_WAITING = { perPrincipal: 500, total: 5_000 };
/** Principals that are remembered before those without a recent refusal are forgotten. */
const MAX_REMEMBERED = 1_000;

interface Paced {
  /** When the next refusal may leave without a burst, in milliseconds of the monotonic clock. */
  next: number;
  waiting: number;
}

/** What ends a wait early. */
export interface Waiting {
  /** Called when the client has left. */
  onGone: (() => void) | null;
  readonly isGone: boolean;
}

/** The pace at which refusals leave that say when to come back. Each process has its own. */
export class RefusalPace {
  private readonly principals = new Map<string, Paced>();
  /** Each ends one wait. */
  private readonly waits = new Set<() => void>();
  private forgetsAt = MAX_REMEMBERED;
  private closed = false;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Principals with refusals that are not forgotten. */
  get remembered(): number {
    return this.principals.size;
  }

  /**
   * Counts refusals of a principal.
   * @returns milliseconds that their answer has to wait
   */
  findDelay(principal: string, refusals: number): number {
    const now = this.now();
    const paced = this.findPaced(principal, now);
    const earliest = now - MAX_BURST * REFUSAL_INTERVAL;
    paced.next = Math.min(Math.max(paced.next, earliest) + refusals * REFUSAL_INTERVAL, now + MAX_DELAY);
    return Math.max(0, paced.next - now);
  }

  /** Waits before the answer to refused calls is sent: until its turn, or until the client leaves or the service closes. */
  async wait(principal: string, refusals: number, waiting: Waiting): Promise<void> {
    const delay = this.findDelay(principal, refusals);
    const paced = this.principals.get(principal);
    if (delay === 0 || !paced || this.closed || waiting.isGone || !this.hasRoomFor(paced)) return;
    paced.waiting += 1;
    await new Promise<void>((resolve) => {
      const { onGone } = waiting;
      const end = () => {
        clearTimeout(timer);
        this.waits.delete(end);
        waiting.onGone = onGone;
        resolve();
      };
      const timer = setTimeout(end, delay);
      this.waits.add(end);
      waiting.onGone = () => {
        end();
        onGone?.();
      };
    });
    paced.waiting -= 1;
  }

  /** Ends every wait; no answer waits any more. */
  close(): void {
    this.closed = true;
    for (const end of this.waits) end();
  }

  private hasRoomFor({ waiting }: Paced): boolean {
    return waiting < MAX_WAITING.perPrincipal && this.waits.size < MAX_WAITING.total;
  }

  private findPaced(principal: string, now: number): Paced {
    const known = this.principals.get(principal);
    if (known) return known;
    if (this.principals.size >= this.forgetsAt) this.forget(now);
    const paced = { next: -Infinity, waiting: 0 };
    this.principals.set(principal, paced);
    return paced;
  }

  /** Removes those for whom a new entry says the same. */
  private forget(now: number): void {
    for (const [principal, { next, waiting }] of this.principals)
      if (waiting === 0 && next <= now - MAX_BURST * REFUSAL_INTERVAL) this.principals.delete(principal);
    this.forgetsAt = Math.max(MAX_REMEMBERED, 2 * this.principals.size);
  }
}
