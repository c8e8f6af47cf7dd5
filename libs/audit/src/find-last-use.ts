import type { AuditTrail } from './audit-trail.js';

/** What a caller of a key did, in contrast to what it was refused for. */
const USES = ['tool_call', 'operator_action'] as const;

/**
 * When the trail recorded the last call of a caller with that key, or its last action as an operator.
 * @param key the name of its rule
 * @returns ISO 8601; null: the trail has none
 */
export async function findLastUse(
  trail: AuditTrail,
  key: string,
  signal?: AbortSignal,
): Promise<string | null> {
  const pages = await Promise.all(USES.map((type) => trail.search({ type, key, limit: 1 }, signal)));
  const times = pages.flatMap(({ entries }) => entries.map(({ at }) => at));
  return times.sort().at(-1) ?? null;
}
