import type { AuditTrail } from '#audit';
import { type ConfigVersion, type LoadedConfig, readOtherThan } from '#config';

/** Milliseconds before a start within which the version before it was replaced: else the start only repeats a known one. */
const REPLACED_WITHIN = 86_400_000;
/** Milliseconds of one search, and its pages: records of calls lie between those of two starts. */
const SEARCHED_WITHIN = 10_000;
const MOST_PAGES = 8;

/**
 * What was served before the start, by the audit records: the newest version with another policy or other agents, as
 * version 0. A restart with the same configuration is none of its own.
 * @param first the version of the start
 * @param recall reads what is recorded; null: it cannot be read
 * @returns null where no record says it, or what it says cannot be read here
 */
export async function findEarlierVersion(
  trail: AuditTrail,
  first: ConfigVersion,
  recall: ((text: string) => LoadedConfig) | null,
): Promise<ConfigVersion | null> {
  if (recall === null || trail.reach !== 'kept') return null;
  const signal = AbortSignal.timeout(SEARCHED_WITHIN);
  const start = first.loadedAt.toISOString();
  const earliest = new Date(first.loadedAt.getTime() - REPLACED_WITHIN).toISOString();
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const found = await trail.search(
      { type: 'configuration', outcome: 'success', to: start, ...(cursor !== null && { cursor }) },
      signal,
    );
    for (const entry of found.entries) {
      if (entry.type !== 'configuration' || entry.policy === undefined) continue;
      const text = readOtherThan(first.config, entry);
      if (text !== null) return { ...recall(text), number: 0, loadedAt: new Date(entry.at) };
      // Nothing is known of what is not whole, and what was served for a day already is not new.
      if (typeof entry.policy !== 'object' || typeof entry.agents !== 'object' || entry.at < earliest)
        return null;
    }
    ({ cursor } = found);
    if (cursor === null) return null;
  }
  return null;
}
