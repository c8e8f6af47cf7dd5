import type { Observable } from 'rxjs';
import type { JsonObject } from './json-object.js';

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface KernelResult {
  readonly result: JsonObject;
  /** Where the same result is sent often: what stands behind the id of its JSON-RPC envelope, as bytes. */
  readonly envelopeTail?: Buffer;
}

export interface KernelFailure {
  readonly error: RpcError;
  /** HTTP status a web transport answers with. */
  readonly status: number;
}

/** A notification was taken: nothing is answered. */
export interface KernelAcceptance {
  readonly accepted: true;
}

/** A JSON-RPC notification without its envelope. */
export interface Notification {
  readonly method: string;
  readonly params?: JsonObject;
}

/** An answer that stays open: notifications as long as there are any, and the result when they complete. */
export class StreamedResult {
  /**
   * @param messages cold: work begins with the subscription and ends with it; an error ends the stream with an internal error
   * @param final sent last, when `messages` completes; a transport that closes first sends it too
   */
  constructor(
    readonly messages: Observable<Notification>,
    readonly final: () => JsonObject,
  ) {}
}

/** What comes of a message: a result, a failure, nothing for a notification, or an answer that stays open. */
export type KernelReply = KernelResult | KernelFailure | KernelAcceptance | StreamedResult;

/** A result that a handler has completed and serialised itself. */
export class PreparedResult implements KernelResult {
  readonly envelopeTail: Buffer;
  constructor(readonly result: JsonObject) {
    this.envelopeTail = Buffer.from(`,"result":${JSON.stringify(result)}}`);
  }
}
