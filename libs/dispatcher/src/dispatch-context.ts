import { IntrinsicException } from '@nestjs/common';
import type { CallContext, LogLevel } from '#core';
import { oneLine } from '#audit';
import type { GovernedRecords } from '#data';
import type { JsonObject } from './json-object.js';
import type { Era } from './protocol-versions.js';

/** A call as the kernel receives it: the agent and the request (CallContext), and the protocol revision. */
export interface DispatchContext extends CallContext {
  /** `legacy`: revisions with sessions; `modern`: the stateless one. */
  readonly era: Era;
  /** The protocol revision: `2025-11-25`. */
  readonly version: string;
  /** The declared client capabilities: from `initialize`, or from this request in the stateless era. */
  readonly clientCapabilities: JsonObject;
  /**
   * The caller's own live session. Absent for a label only: a caller that does not own the id cannot use its session.
   */
  readonly sessionId?: string;
  /** The JSON-RPC id; absent for a notification. */
  readonly requestId?: unknown;
  /** Absent when the transport can send only the answer. */
  readonly link?: ClientLink;
  /** Stores the log level that the session receives from now on. Absent without a session. */
  readonly setLogLevel?: (level: LogLevel) => Promise<void>;
  /** Reads the `Mcp-Param-<name>` header. Absent when the transport has no headers; the check is then skipped. */
  readonly parameterHeader?: (name: string) => string | undefined;
}

/** Why a client request failed. Only the caller of the request receives the reason. */
export type UnreachableReason = 'no-session' | 'no-stream' | 'not-delivered' | 'timed-out' | 'aborted';

/** A client request received no reply. */
export class ClientUnreachable extends IntrinsicException {
  constructor(
    /** Why the request failed. */
    readonly reason: UnreachableReason,
  ) {
    super(`the client could not be asked: ${reason}`);
    this.name = 'ClientUnreachable';
  }
}

/** The reply of a client: a result or an error. */
export type ClientReply = { readonly result: unknown } | { readonly error: unknown };

/**
 * The channel to the client while its call runs. The transport provides it; a transport without such a channel provides
 * none.
 */
export interface ClientLink {
  /** Sends a notification beside the answer. It is dropped when no stream is open at that moment; never throws. */
  notify(method: string, params?: JsonObject): void;
  /**
   * Sends a JSON-RPC request, on the stream of this call or else on the session's listening stream, and waits for the reply,
   * which may arrive at another replica. Revisions with sessions only: the stateless one asks by its result.
   * @param timeout milliseconds
   * @throws ClientUnreachable; the wait ends at once when the call is cancelled, the stream closes or the session ends
   */
  request(method: string, params: JsonObject, timeout: number): Promise<ClientReply>;
}

/** Log of internal causes. One line per call; never sent to a client. */
export interface WarningLog {
  warn(message: string): void;
}

/** Class and message of any thrown value, for the log alone. */
export function faultLine(prefix: string, error: unknown): string {
  if (!(error instanceof Error)) return `${prefix} ${oneLine(typeof error)}`;
  return `${prefix} ${oneLine(error.name)}: ${oneLine(error.message)}`;
}

/** Creates the governed data access of one call. */
export abstract class RecordsSource {
  abstract for(context: CallContext): GovernedRecords;
}
