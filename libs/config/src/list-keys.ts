import { parseExpiry } from '#auth';
import { endClock } from '#core';
import { type AuthRuleConfig, KINDS } from './sections/auth.js';

/** A rule of `auth` as operators see it, without its credential. */
export interface ListedKey {
  /** Null: it has none, and records do not say when it was used. */
  readonly name: string | null;
  readonly kind: (typeof KINDS)[number];
  /** That its callers run as; several where scopes of a token choose. */
  readonly agents: readonly string[];
  /** ISO 8601; null: it has no end. */
  readonly expires_at: string | null;
  /** Its callers are refused. */
  readonly expired: boolean;
}

/** The rules of `auth` in their order. @param now milliseconds since 1970 */
export function listKeys(auth: readonly AuthRuleConfig[], now = endClock()): ListedKey[] {
  return auth.map((rule) => {
    const end = rule.expires === undefined ? null : parseExpiry(rule.expires);
    const scopes = 'oauth' in rule ? Object.values(rule.oauth.scopes ?? {}) : [];
    return {
      name: rule.name ?? null,
      kind: KINDS.find((kind) => kind in rule) as ListedKey['kind'],
      agents: [...new Set([rule.agent, ...scopes])],
      expires_at: end === null ? null : new Date(end).toISOString(),
      expired: end !== null && now >= end,
    };
  });
}

/** Milliseconds before its end in which a key is pointed out. */
const NOTICE_PERIOD = 14 * 86_400_000;

/** A key that has an end, in the time in which somebody should replace it. */
export interface EndingKey extends ListedKey {
  readonly name: string;
  readonly expires_at: string;
}

/** Keys that ended, or that end within 14 days. */
export function findEndingKeys(auth: readonly AuthRuleConfig[], now = endClock()): EndingKey[] {
  return listKeys(auth, now).filter(
    (key): key is EndingKey => key.expires_at !== null && Date.parse(key.expires_at) - now <= NOTICE_PERIOD,
  );
}

/** `the key analyst-2026 of 'analyst' expires on …`. */
export function describeEnd({ name, agents, expires_at, expired }: EndingKey): string {
  const whose = `the key ${name} of '${agents.join("', '")}'`;
  return expired
    ? `${whose} expired at ${expires_at}: its callers are refused`
    : `${whose} expires at ${expires_at}`;
}
