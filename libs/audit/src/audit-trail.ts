import { canonicalClassName, MOMENT_RULE, readMoment } from '#core';
import type { ApprovalRecord, AuditEvent, AuditRecord } from './audit-record.js';

/** Position of an entry in the chain of its process, starting at 0. */
interface AuditPosition {
  readonly chain: string;
  readonly seq: number;
  /** Hash of the record before it in its chain; empty for the first. */
  readonly prev?: string;
  /** Hash of all other members (docs/operations/audit.md). */
  readonly hash?: string;
}

/** A stored record; `type` discriminates (docs/operations/audit.md). */
export type AuditEntry = AuditPosition & { readonly at: string; readonly success: boolean } & (
    | ({ readonly type: 'tool_call' | 'export_read' } & AuditRecord)
    | ({ readonly type: 'approval' } & ApprovalRecord)
    | AuditEvent
  );

export type AuditEntryType = AuditEntry['type'];

/** Filters of a search; an entry must match all of them. */
export interface AuditQuery {
  /** ISO 8601, inclusive. */
  readonly from?: string;
  /** ISO 8601, exclusive. */
  readonly to?: string;
  /** What kind of entry. */
  readonly type?: AuditEntryType;
  /** Name of the agent. */
  readonly agent?: string;
  /** Name of the tool that was called. */
  readonly tool?: string;
  /** Name of the class that the call named; `User` finds `_User`. */
  readonly className?: string;
  /** Id of the row that a call wrote, where `audit.objects` is `id`. */
  readonly objectId?: string;
  /** Digest of the row that a call wrote, as another record has it. */
  readonly objectDigest?: string;
  /** The caller, as it is recorded. */
  readonly principal?: string;
  /** The name of the `auth` rule that admitted the caller. */
  readonly key?: string;
  /** The name of the `auth` rule that admitted who decided an approval. */
  readonly approverKey?: string;
  /** As text; a number matches its digits. */
  readonly tenant?: string;
  /** `failure`: refused or failed. */
  readonly outcome?: 'success' | 'failure';
  /** Approvals: what was decided; `unavailable` when no approver decided. */
  readonly decision?: ApprovalRecord['outcome'];
  /** Who decided an approval: its principal, or the name of the `auth` rule that admitted it. */
  readonly approver?: string;
  /** The gate that refused. */
  readonly gate?: string;
  /** The code of a refusal. */
  readonly code?: string;
  /** Network address of a refused caller. */
  readonly address?: string;
  /** Correlation id of the request. */
  readonly correlationId?: string;
  /** `X-Request-Id` of the request. */
  readonly requestId?: string;
  /** Of the trace that the call was part of: 32 hexadecimal digits. */
  readonly traceId?: string;
  /** Entries of a page, 1 to 200. Default 50. */
  readonly limit?: number;
  /** Cursor of the previous page. */
  readonly cursor?: string;
}

/** What was found, a page at a time. */
export interface AuditPage {
  /** Newest first. */
  readonly entries: readonly AuditEntry[];
  /** Of the next page; null after the last. A page of a search that was cut may be empty and have one. */
  readonly cursor: string | null;
  /** What was searched for this page. */
  readonly searched?: AuditSearched;
}

/** Where a search looked, and how far. */
interface AuditSearched {
  readonly store: 'memory' | 'file' | 'mongodb';
  /** `replica`: records of this process, or of the files that it writes. `replicas`: of all processes. */
  readonly scope: 'replica' | 'replicas';
  /** Records that were read. Absent where the database counts them. */
  readonly records?: number;
  /** Bytes that were read. */
  readonly bytes?: number;
  /** The limit at which the search stopped before the page was full; null: at none. The cursor continues. */
  readonly cut: 'bytes' | 'records' | null;
  /** Time of the oldest record that was read; null: unknown, or none was. */
  readonly back_to: string | null;
}

/** The query has an invalid limit, time or cursor. */
export class AuditQueryError extends TypeError {
  /** A constant name: `instanceof` fails where two copies of the package are loaded. */
  override readonly name = 'AuditQueryError';
}

/** Searches audit records. For operators only: entries hold private causes. */
export abstract class AuditTrail {
  /** `recent`: the memory of this process. `kept`: a store that outlives the process. */
  abstract readonly reach: 'recent' | 'kept';
  /**
   * A page of entries, newest first.
   * @param signal ends the search of a store; it then rejects
   * @throws AuditQueryError for an invalid limit, time or cursor
   */
  abstract search(query: AuditQuery, signal?: AbortSignal): Promise<AuditPage>;
}

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;

/** @throws AuditQueryError */
export function readLimit({ limit = DEFAULT_LIMIT }: AuditQuery): number {
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new AuditQueryError(`limit: expected a whole number from 1 to ${MAX_LIMIT}`);
  return limit;
}

/** A time in the notation of entries. @throws AuditQueryError */
export function parseMoment(text: string | undefined, name: 'from' | 'to'): string | undefined {
  if (text === undefined) return undefined;
  const time = readMoment(text);
  if (time === null) throw new AuditQueryError(`${name}: expected ${MOMENT_RULE}`);
  return new Date(time).toISOString();
}

/** Sort key of entries: time, then chain and position. */
export type AuditOrder = AuditPosition & { readonly at: string };

export function newestFirst(a: AuditOrder, b: AuditOrder): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  if (a.chain !== b.chain) return a.chain < b.chain ? 1 : -1;
  return b.seq - a.seq;
}

function cursorAfter({ at, chain, seq }: AuditOrder): string {
  return Buffer.from(JSON.stringify([at, chain, seq])).toString('base64url');
}

/** @throws AuditQueryError */
export function readCursor(cursor: string): AuditOrder {
  try {
    const [at, chain, seq] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as unknown[];
    if (typeof at === 'string' && typeof chain === 'string' && Number.isSafeInteger(seq))
      return { at, chain, seq: seq as number };
  } catch {
    // Thrown below, as for any other invalid cursor.
  }
  throw new AuditQueryError('cursor: expected the one of an earlier page');
}

/** The members of a record of which one must equal a value of the query, in any store. */
export function membersAsked(query: AuditQuery): [members: readonly string[], value: string][] {
  const asked: [string | readonly string[], string | undefined][] = [
    ['type', query.type],
    ['agent_name', query.agent],
    ['tool', query.tool],
    ['class_name', query.className === undefined ? undefined : canonicalClassName(query.className)],
    ['object_id', query.objectId],
    ['object_digest', query.objectDigest],
    ['principal', query.principal],
    ['key_name', query.key],
    ['approver_key', query.approverKey],
    ['outcome', query.decision],
    [['approver', 'approver_key'], query.approver],
    ['gate', query.gate],
    ['error_code', query.code],
    ['remote_address', query.address],
    ['correlation_id', query.correlationId],
    ['request_id', query.requestId],
    ['trace_id', query.traceId],
  ];
  return asked.flatMap(([members, value]) => (value === undefined ? [] : [[[members].flat(), value]]));
}

/** A predicate for all filters of a query, including its cursor. @throws AuditQueryError */
export function createMatcher(query: AuditQuery): (entry: AuditEntry) => boolean {
  const from = parseMoment(query.from, 'from');
  const to = parseMoment(query.to, 'to');
  const equal = membersAsked(query);
  const after = query.cursor === undefined ? null : readCursor(query.cursor);
  return (entry) => {
    if (from !== undefined && entry.at < from) return false;
    if (to !== undefined && entry.at >= to) return false;
    if (query.outcome !== undefined && entry.success !== (query.outcome === 'success')) return false;
    const fields = entry as unknown as Record<string, unknown>;
    if (query.tenant !== undefined && !isTenant(fields['tenant_id'], query.tenant)) return false;
    if (after && newestFirst(entry, after) <= 0) return false;
    return equal.every(([names, value]) => names.some((name) => fields[name] === value));
  };
}

function isTenant(held: unknown, wanted: string): boolean {
  return (typeof held === 'string' || typeof held === 'number') && String(held) === wanted;
}

/** The first page of sorted matches. */
export function takePage(found: readonly AuditEntry[], limit: number): AuditPage {
  const entries = found.slice(0, limit);
  const last = entries.at(-1);
  return { entries, cursor: found.length > limit && last ? cursorAfter(last) : null };
}
