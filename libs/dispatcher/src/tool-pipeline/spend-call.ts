import { type Agent, DEFAULT_RATE_LIMIT, Refused, refusals } from '#agent';

/**
 * Spends one call of the principal's rate limit. A limiter that fails counts as exhausted, for a random while.
 * @throws Refused
 */
export async function spendCall(
  { shape, principal }: Agent,
  logger: { error(line: string): void },
): Promise<void> {
  let verdict;
  try {
    verdict = await shape.rateLimiter.check(principal);
  } catch (error) {
    logger.error(`the rate limiter of '${shape.name}' failed: ${String(error)}`);
    // The same words as a real limit: which of the two it was is nobody's business but the operator's.
    const { limit, window } = shape.rateLimiter.rate ?? DEFAULT_RATE_LIMIT;
    throw new Refused(refusals.rateLimited(limit, window, 1 + Math.random() * 4));
  }
  if (verdict) throw new Refused(refusals.rateLimited(verdict.limit, verdict.window, verdict.retryAfter));
}
