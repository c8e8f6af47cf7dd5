import { Refused, refusals } from '#agent';
import type { FindOptions } from '../governed-records.js';

const QUERY_LIMITS = { default: 100, max: 1000 } as const;

/** Only `false` opts out of the canonical filter; what is neither boolean nor absent is refused. */
export function readOptOut(applyCanonicalFilter: unknown): boolean {
  if (applyCanonicalFilter === undefined || applyCanonicalFilter === true) return false;
  if (applyCanonicalFilter === false) return true;
  throw new Refused(refusals.invalidArgument('apply_canonical_filter must be true or false'));
}

/** Larger limits are cut to the maximum; anything but a whole number in range is refused. */
export function readPage(options: Pick<FindOptions, 'limit' | 'skip' | 'ceiling'>): {
  limit: number;
  skip: number;
} {
  const { limit = QUERY_LIMITS.default, skip = 0, ceiling = QUERY_LIMITS.max } = options;
  if (!Number.isInteger(limit) || limit < 1)
    throw new Refused(refusals.invalidArgument('limit must be a whole number, at least 1'));
  if (!Number.isInteger(skip) || skip < 0)
    throw new Refused(refusals.invalidArgument('skip must be a whole number, at least 0'));
  return { limit: Math.min(limit, ceiling), skip };
}
