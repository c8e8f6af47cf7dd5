export interface SubscriptionOptions {
  /** Whether resources can be watched. Default true. */
  readonly enabled?: boolean;
  /**
   * Seconds from the first change to the single update that covers it and all that follow until then; 0 or less: one update
   * per change. Default 0.25.
   */
  readonly debounce?: number;
  /** Resources that one session, or one listening request, may watch. Default 100. */
  readonly maxPerSession?: number;
  /** Sessions with subscriptions, on all replicas; separately, listening requests on this one. Default 10,000. */
  readonly maxSessions?: number;
}

export const DEFAULT_SUBSCRIPTIONS: Required<SubscriptionOptions> = Object.freeze({
  enabled: true,
  debounce: 0.25,
  maxPerSession: 100,
  maxSessions: 10_000,
});

/** The options of subscriptions, checked. */
export class SubscriptionLimits {
  readonly enabled: boolean;
  /** Milliseconds. */
  readonly debounce: number;
  readonly maxPerSession: number;
  readonly maxSessions: number;
  /** Maximum sessions of one principal; separately, listening requests. */
  readonly maxPerPrincipal: number;

  /** @throws TypeError naming the invalid option */
  constructor(options: SubscriptionOptions = {}) {
    const {
      enabled = DEFAULT_SUBSCRIPTIONS.enabled,
      debounce = DEFAULT_SUBSCRIPTIONS.debounce,
      maxPerSession = DEFAULT_SUBSCRIPTIONS.maxPerSession,
      maxSessions = DEFAULT_SUBSCRIPTIONS.maxSessions,
    } = options;
    if (!Number.isFinite(debounce)) throw new TypeError('debounce: expected a number of seconds');
    this.enabled = enabled;
    this.debounce = debounce * 1000;
    this.maxPerSession = positive(maxPerSession, 'maxPerSession');
    this.maxSessions = positive(maxSessions, 'maxSessions');
    this.maxPerPrincipal = Math.max(1, Math.floor(maxSessions / 10));
  }
}

function positive(value: number, option: string): number {
  if (!Number.isSafeInteger(value) || value < 1)
    throw new TypeError(`${option}: expected a positive integer`);
  return value;
}
