import { isJsonObject } from '#core';
import type { ParseRow } from '#data';
import type { ParseAnswer } from '../connection/parse-connection.js';
import { ParseServerError, parseServerError } from '../connection/parse-errors.js';

/** Rows that are requested at once. */
export const PAGE_SIZE = 1000;

interface RowsAsked {
  /** Remembers the longest page of the server so far: its `maxLimit` is no smaller. */
  readonly server: { longestPage: number };
  readonly skip?: number | undefined;
  readonly limit: number;
  /** The rows of one request, always in the same order. */
  readonly read: (page: { readonly skip: number; readonly limit: number }) => Promise<ParseRow[]>;
  /** How many rows match in all. */
  readonly count: () => Promise<number>;
}

export interface FoundRows {
  readonly rows: ParseRow[];
  /** Rows that match within what was asked for, those included that Cloud Code removed. */
  readonly passed: number;
}

/**
 * Rows in as many requests as they need. A page may be short although more rows match: a server has a `maxLimit` that it does not
 * tell, and Cloud Code removes rows from answers. How many match tells it, or an empty page where a session may not count. The next
 * page begins where the short one surely ended; a row that comes twice stays where it came first.
 */
export async function readPages({ server, skip = 0, limit, read, count }: RowsAsked): Promise<FoundRows> {
  const rows = new Map<unknown, ParseRow>();
  const end = skip + limit;
  let total: number | null = null;
  let at = skip;
  while (at < Math.min(end, total ?? end)) {
    const wanted = Math.min(PAGE_SIZE, end - at);
    const found = await read({ skip: at, limit: wanted });
    for (const row of found) rows.set(readId(row), row);
    server.longestPage = Math.max(server.longestPage, found.length);
    if (found.length === wanted) {
      at += wanted;
      continue;
    }
    total ??= await count().catch(nullIfDenied);
    if (total === null && found.length === 0) break;
    at += Math.min(wanted, server.longestPage);
  }
  return { rows: [...rows.values()], passed: Math.max(0, Math.min(total ?? at, end) - skip) };
}

/** A session may find what it may not count. */
function nullIfDenied(error: unknown): null {
  if (error instanceof ParseServerError && error.code === 'denied') return null;
  throw error;
}

/** Every row that Parse Server returns has its id, whatever `keys` names. */
function readId({ objectId }: ParseRow): string {
  if (typeof objectId !== 'string') throw parseServerError('failed', 'a row without an id in the answer');
  return objectId;
}

export function readResults({ results }: ParseAnswer): ParseRow[] {
  if (!Array.isArray(results) || !results.every(isJsonObject))
    throw parseServerError('failed', 'no list of results in the answer');
  return results;
}

export function readCount({ count }: ParseAnswer): number {
  if (!Number.isSafeInteger(count) || (count as number) < 0)
    throw parseServerError('failed', 'no count in the answer');
  return count as number;
}
