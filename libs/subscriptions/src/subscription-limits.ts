export const DEFAULT_SUBSCRIPTIONS = {
  /** Whether resources can be watched. */
  enabled: true,
  /**
   * Seconds from the first change to the single update that covers it and all that follow until then; 0 or less: one update
   * per change.
   */
  debounce: 0.25,
  /** Resources that one session, or one listening request, may watch. */
  maxPerSession: 100,
  /** Sessions with subscriptions, on all replicas; separately, listening requests on this one. */
  maxSessions: 10_000,
};

export type SubscriptionOptions = Readonly<Partial<typeof DEFAULT_SUBSCRIPTIONS>>;

/** The options of subscriptions, which the configuration has checked. */
export class SubscriptionLimits {
  readonly enabled: boolean;
  /** Milliseconds. */
  readonly debounce: number;
  readonly maxPerSession: number;
  readonly maxSessions: number;
  /** Maximum sessions of one principal; separately, listening requests. */
  readonly maxPerPrincipal: number;

  constructor(options: SubscriptionOptions = {}) {
    const { debounce, ...others } = { ...DEFAULT_SUBSCRIPTIONS, ...options };
    this.debounce = debounce * 1000;
    this.enabled = others.enabled;
    this.maxPerSession = others.maxPerSession;
    this.maxSessions = others.maxSessions;
    this.maxPerPrincipal = Math.max(1, Math.floor(others.maxSessions / 10));
  }
}
