import type { AuditEntry, AuditPosition } from './audit-entry.js';
import { type AuditPage, type AuditQuery, AuditQueryError } from './audit-trail.js';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;

/** @throws AuditQueryError */
export function limitOf({ limit = DEFAULT_LIMIT }: AuditQuery): number {
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new AuditQueryError(`limit: expected a whole number from 1 to ${MAX_LIMIT}`);
  return limit;
}

/** A moment as entries write it. @throws AuditQueryError */
export function momentOf(text: string | undefined, name: 'from' | 'to'): string | undefined {
  if (text === undefined) return undefined;
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new AuditQueryError(`${name}: expected a time in ISO 8601`);
  return new Date(time).toISOString();
}

/** Entries are ordered by time and, at the same time, by chain and place in it. */
export type AuditOrder = AuditPosition & { readonly at: string };

export function newestFirst(a: AuditOrder, b: AuditOrder): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  if (a.chain !== b.chain) return a.chain < b.chain ? 1 : -1;
  return b.seq - a.seq;
}

export function cursorAfter({ at, chain, seq }: AuditOrder): string {
  return Buffer.from(JSON.stringify([at, chain, seq])).toString('base64url');
}

/** @throws AuditQueryError */
export function readCursor(cursor: string): AuditOrder {
  try {
    const [at, chain, seq] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as unknown[];
    if (typeof at === 'string' && typeof chain === 'string' && Number.isSafeInteger(seq))
      return { at, chain, seq: seq as number };
  } catch {
    // Told below, like any other text that is none.
  }
  throw new AuditQueryError('cursor: expected the one of an earlier page');
}

/** The members of a record that must equal what a query asks, wherever the records are kept. */
export function membersAsked(query: AuditQuery): [member: string, value: string][] {
  const asked: [string, string | undefined][] = [
    ['type', query.type],
    ['agent_name', query.agent],
    ['tool', query.tool],
    ['principal', query.principal],
    ['gate', query.gate],
    ['error_code', query.code],
    ['correlation_id', query.correlationId],
    ['trace_id', query.traceId],
  ];
  return asked.filter((one): one is [string, string] => one[1] !== undefined);
}

/** One test of an entry for all that a query asks, its page apart. @throws AuditQueryError */
export function matching(query: AuditQuery): (entry: AuditEntry) => boolean {
  const from = momentOf(query.from, 'from');
  const to = momentOf(query.to, 'to');
  const equal = membersAsked(query);
  const after = query.cursor === undefined ? null : readCursor(query.cursor);
  return (entry) => {
    if (from !== undefined && entry.at < from) return false;
    if (to !== undefined && entry.at >= to) return false;
    if (query.outcome !== undefined && entry.success !== (query.outcome === 'success')) return false;
    const fields = entry as unknown as Record<string, unknown>;
    if (query.tenant !== undefined && !isTenant(fields['tenant_id'], query.tenant)) return false;
    if (after && newestFirst(entry, after) <= 0) return false;
    return equal.every(([name, value]) => fields[name] === value);
  };
}

function isTenant(held: unknown, wanted: string): boolean {
  return (typeof held === 'string' || typeof held === 'number') && String(held) === wanted;
}

/** The first page of entries that match and are in order. */
export function pageOf(found: readonly AuditEntry[], limit: number): AuditPage {
  const entries = found.slice(0, limit);
  const last = entries.at(-1);
  return { entries, cursor: found.length > limit && last ? cursorAfter(last) : null };
}
