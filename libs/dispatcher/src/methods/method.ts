import type { RequestContext } from '#core';
import type { InputRound } from '../client-requests/client-requests.js';
import {
  type Dialect,
  type LegacyVersion,
  type JsonObject,
  type CacheHint,
  type PreparedResult,
  type RequestFailure,
  type StreamedResult,
  type WrittenResult,
  invalidParams,
} from '../protocol.js';

export interface MethodRequest {
  readonly params: JsonObject;
  readonly context: RequestContext;
  readonly dialect: Dialect;
  /** The declared client capabilities. */
  readonly capabilities: JsonObject;
  /** The round of a method that may send client requests, in the stateless era. */
  readonly round?: InputRound;
}

/** Returns the result without the members of the era, or a complete result. @throws ProtocolError */
export type MethodHandler = (request: MethodRequest) => Handled | Promise<Handled>;
/** What a handler returns: a result, a complete one, one that stays open, or an expected failure. */
export type Handled = JsonObject | PreparedResult | WrittenResult | StreamedResult | RequestFailure;

/** One row of the method table. */
export interface Method {
  /** The first legacy revision that has it; `null`: none. */
  readonly legacySince: LegacyVersion | null;
  readonly modern: boolean;
  readonly cache?: CacheHint;
  readonly handle: MethodHandler;
}

/** Entries per page of a list; a smaller catalogue is sent whole. */
const PAGE_SIZE = 200;

export interface Page<T> {
  readonly entries: readonly T[];
  readonly nextCursor?: string;
}

function encode(list: string, offset: number): string {
  return Buffer.from(`${list} ${offset}`, 'utf8').toString('base64url');
}

/** Accepts only a cursor that this list could have issued, so that every replica reads every cursor. */
function offsetOf(list: string, cursor: unknown, total: number): number {
  if (cursor === undefined || cursor === null) return 0;
  for (let offset = PAGE_SIZE; offset < total; offset += PAGE_SIZE) {
    if (encode(list, offset) === cursor) return offset;
  }
  throw invalidParams('Invalid cursor');
}

/** @throws ProtocolError -32602 for a cursor this list never issued */
export function pageOf<T>(list: string, all: readonly T[], cursor: unknown): Page<T> {
  const offset = offsetOf(list, cursor, all.length);
  const end = offset + PAGE_SIZE;
  if (offset === 0 && end >= all.length) return { entries: all };
  return {
    entries: all.slice(offset, end),
    ...(end < all.length && { nextCursor: encode(list, end) }),
  };
}
