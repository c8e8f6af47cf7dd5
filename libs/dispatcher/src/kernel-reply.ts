import type { Observable } from 'rxjs';
import type { Era } from '#core';
import { isJsonObject, type JsonObject } from './json-object.js';
import { SERVER_INFO_KEY } from './protocol-versions.js';

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface KernelResult {
  readonly result: JsonObject;
  /** For a result that is sent often: the bytes after the id in its JSON-RPC envelope. */
  readonly envelopeTail?: Buffer;
}

export interface KernelFailure {
  readonly error: RpcError;
  /** HTTP status a web transport answers with. */
  readonly status: number;
}

/** A failure that a handler returns instead of throwing: an expected one needs no Error with its stack. */
export class RequestFailure implements KernelFailure {
  constructor(
    readonly error: RpcError,
    readonly status: number,
  ) {}
}

/** A notification was accepted and has no answer. */
interface KernelAcceptance {
  readonly accepted: true;
}

/** A JSON-RPC notification without its envelope. */
export interface Notification {
  readonly method: string;
  readonly params?: JsonObject;
}

/** An answer that stays open: it sends notifications, and the result when they complete. */
export class StreamedResult {
  /**
   * @param messages cold: work begins with the subscription and ends with it; an error ends the stream with an internal
   * error
   * @param final sent last, when `messages` completes; a transport that closes first sends it too
   */
  constructor(
    readonly messages: Observable<Notification>,
    readonly final: () => JsonObject,
  ) {}
}

/** The reply to a message: a result, an error, nothing for a notification, or an answer that stays open. */
export type KernelReply = KernelResult | KernelFailure | KernelAcceptance | StreamedResult;

/** A result that a handler completed and serialised itself. */
export class PreparedResult implements KernelResult {
  readonly envelopeTail: Buffer;
  constructor(readonly result: JsonObject) {
    this.envelopeTail = Buffer.from(`,"result":${JSON.stringify(result)}}`);
  }
}

export interface ServerInfo {
  readonly name: string;
  readonly version: string;
}

/** How long a client may cache a result (milliseconds), and whether agents may share it. */
export interface CacheHint {
  readonly ttlMs: number;
  readonly cacheScope: 'public' | 'private';
}

/** Adds the members that the stateless era requires in every result; legacy results stay unchanged. */
export class ResultEnvelope {
  constructor(private readonly serverInfo: ServerInfo) {}

  complete(era: Era, result: JsonObject, hint: CacheHint | undefined): JsonObject {
    if (era === 'legacy') return result;
    const meta = isJsonObject(result._meta) ? result._meta : {};
    return {
      resultType: 'complete',
      ...result,
      // Client requests are never cached as the answer.
      ...(result['resultType'] === undefined && hint),
      _meta: { ...meta, [SERVER_INFO_KEY]: this.serverInfo },
    };
  }
}

/** Bytes of text one answer may hold. */
export const MAX_RESPONSE_BYTES = 4_194_304;

export function exceedsResponseLimit(text: string): boolean {
  // A UTF-16 unit is at most three bytes of UTF-8, so short texts need no counting.
  return text.length * 3 > MAX_RESPONSE_BYTES && Buffer.byteLength(text, 'utf8') > MAX_RESPONSE_BYTES;
}
