import { AuthenticationUnavailable } from '../authentication-faults.js';

/** Milliseconds. */
export interface FreshnessOptions {
  /** Until it is fetched anew. */
  readonly refreshAfter: number;
  /** How long it may be used when it cannot be. */
  readonly usableFor: number;
  /** Between two fetches, failed ones included: however many callers ask, the other side is not asked more often. */
  readonly cooldown: number;
  /** Only differences count. Default: of this process. */
  readonly now?: () => number;
}

/** Milliseconds between two attempts while there is nothing to serve from. */
const IMPATIENCE = 1_000;

/**
 * Something fetched that is believed for a while. An outage of its source does not end it at once: what is known serves on
 * within a bound, and beyond it nothing does.
 */
export class KeptFresh<T> {
  private known: { readonly value: T; readonly at: number } | null = null;
  private lastAttempt = -Infinity;
  private fetching: Promise<void> | null = null;
  private failure = 'never fetched';
  private readonly now: () => number;

  constructor(
    private readonly fetchAnew: () => Promise<T>,
    private readonly options: FreshnessOptions,
  ) {
    this.now = options.now ?? (() => performance.now());
  }

  /** @throws AuthenticationUnavailable when nothing that is known may be used any more */
  async current(): Promise<T> {
    const usable = this.usable();
    if (usable && this.ageOf(usable) < this.options.refreshAfter) return usable.value;
    if (usable) {
      // Whoever comes by while it is renewed need not wait for it.
      void this.renew();
      return usable.value;
    }
    await this.renew();
    const renewed = this.usable();
    if (!renewed) throw new AuthenticationUnavailable(this.failure);
    return renewed.value;
  }

  /**
   * What there is after another look, because what is known seems too old. Within the cooldown it is what is known.
   * @throws AuthenticationUnavailable
   */
  async renewed(): Promise<T> {
    await this.renew();
    return this.current();
  }

  private usable() {
    return this.known && this.ageOf(this.known) < this.options.usableFor ? this.known : null;
  }

  private ageOf({ at }: { readonly at: number }): number {
    return this.now() - at;
  }

  private async renew(): Promise<void> {
    if (this.fetching) return this.fetching;
    // With nothing to serve from, waiting long would make an outage longer than it is.
    const cooldown = this.usable() ? this.options.cooldown : Math.min(this.options.cooldown, IMPATIENCE);
    if (this.now() - this.lastAttempt < cooldown) return;
    this.lastAttempt = this.now();
    this.fetching = this.fetchAnew()
      .then(
        (value) => {
          this.known = { value, at: this.now() };
        },
        (error: unknown) => {
          this.failure = error instanceof AuthenticationUnavailable ? error.cause : String(error);
        },
      )
      .finally(() => {
        this.fetching = null;
      });
    return this.fetching;
  }
}
