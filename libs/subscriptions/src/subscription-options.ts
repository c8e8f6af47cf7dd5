export interface SubscriptionOptions {
  /** Seconds from the first change to the one update that tells it and all that follow until then; 0 or less: one update per change. Default 0.25. */
  readonly debounce?: number;
  /** Resources that one session, or one listening request, may watch. Default 100. */
  readonly maxPerSession?: number;
  /** Sessions with subscriptions, on all replicas; separately, listening requests on this one. Default 10,000. */
  readonly maxSessions?: number;
}

export const DEFAULT_SUBSCRIPTIONS: Required<SubscriptionOptions> = Object.freeze({
  debounce: 0.25,
  maxPerSession: 100,
  maxSessions: 10_000,
});

export interface SubscriptionLimits {
  /** Milliseconds. */
  readonly debounce: number;
  readonly maxPerSession: number;
  readonly maxSessions: number;
  /** Of the sessions, how many one principal may have; separately, listening requests. */
  readonly maxPerPrincipal: number;
}

/** @throws TypeError naming the option that cannot be used */
export function subscriptionLimits(options: SubscriptionOptions = {}): SubscriptionLimits {
  const {
    debounce = DEFAULT_SUBSCRIPTIONS.debounce,
    maxPerSession = DEFAULT_SUBSCRIPTIONS.maxPerSession,
    maxSessions = DEFAULT_SUBSCRIPTIONS.maxSessions,
  } = options;
  if (!Number.isFinite(debounce)) throw new TypeError('debounce: expected a number of seconds');
  return {
    debounce: debounce * 1000,
    maxPerSession: positive(maxPerSession, 'maxPerSession'),
    maxSessions: positive(maxSessions, 'maxSessions'),
    maxPerPrincipal: Math.max(1, Math.floor(maxSessions / 10)),
  };
}

function positive(value: number, option: string): number {
  if (!Number.isSafeInteger(value) || value < 1)
    throw new TypeError(`${option}: expected a positive integer`);
  return value;
}
