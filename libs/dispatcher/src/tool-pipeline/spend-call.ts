import { type Agent, Refused, refusals } from '#agent';

/**
 * Spends one call of the principal's rate limit. While a limiter cannot count, nothing passes, for a random while.
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
    throw new Refused(refusals.limitUncountable('rate_limit', 1 + Math.random() * 4));
  }
  if (verdict) throw new Refused(refusals.rateLimited(verdict.limit, verdict.window, verdict.retryAfter));
}
