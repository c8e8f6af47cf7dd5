import { IntrinsicException } from '@nestjs/common';
import type { JsonObject } from './json-object.js';

/** Why a client could not be asked; the words go to nobody but the caller of the request. */
export type UnreachableReason = 'no-session' | 'no-stream' | 'not-delivered' | 'timed-out' | 'aborted';

/** A request to the client came to no reply. */
export class ClientUnreachable extends IntrinsicException {
  constructor(
    /** Which way the request was lost. */
    readonly reason: UnreachableReason,
  ) {
    super(`the client could not be asked: ${reason}`);
    this.name = 'ClientUnreachable';
  }
}

/** What a client answered: a result, or the error it sent instead. */
export type ClientReply = { readonly result: unknown } | { readonly error: unknown };

/** The way back to the client while its call runs. Transports make it; one that can carry nothing makes none. */
export interface ClientLink {
  /** Sends a notification beside the answer. Dropped where nothing can carry it at that moment; never throws. */
  notify(method: string, params?: JsonObject): void;
  /**
   * Sends a JSON-RPC request, on the stream of this call or else on the session's listening stream, and waits for the reply,
   * which may arrive at another replica. Revisions with sessions only: the stateless one asks by its result.
   * @param timeout milliseconds
   * @throws ClientUnreachable; the wait ends at once when the call is cancelled, the stream closes or the session ends
   */
  request(method: string, params: JsonObject, timeout: number): Promise<ClientReply>;
}
