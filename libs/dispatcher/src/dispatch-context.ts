import { IntrinsicException } from '@nestjs/common';
import type { CallContext, LogLevel } from '#core';
import { oneLine } from '#audit';
import type { GovernedRecords } from '#data';
import type { JsonObject } from './json-object.js';
import type { Era } from './protocol-versions.js';

/** A call as the kernel needs to know it: who and when (CallContext), and which protocol it came in. */
export interface DispatchContext extends CallContext {
  /** `legacy`: revisions with sessions; `modern`: the stateless one. */
  readonly era: Era;
  /** The revision, as clients name it: `2025-11-25`. */
  readonly version: string;
  /** What the client declared: at `initialize`, or on this request in the stateless era. */
  readonly clientCapabilities: JsonObject;
  /** The caller's own live session. Absent for a mere label: who does not own the id has no power over its session. */
  readonly sessionId?: string;
  /** The JSON-RPC id; absent for a notification. */
  readonly requestId?: unknown;
  /** Absent where the transport can carry nothing but the answer. */
  readonly link?: ClientLink;
  /** Keeps the level of log lines that the session wants from now on. Absent where there is no session to keep it. */
  readonly setLogLevel?: (level: LogLevel) => Promise<void>;
  /** Reads the `Mcp-Param-<name>` header. Absent where the transport has no headers, which skips their check. */
  readonly parameterHeader?: (name: string) => string | undefined;
}

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

/** Where private causes go. One line per call; never sent to a client. */
export interface WarningLog {
  warn(message: string): void;
}

/** Class and message of anything that was thrown, for the log alone. */
export function faultLine(prefix: string, fault: unknown): string {
  if (!(fault instanceof Error)) return `${prefix} ${oneLine(typeof fault)}`;
  return `${prefix} ${oneLine(fault.name)}: ${oneLine(fault.message)}`;
}

/** Makes the governed door to data for one call. */
export abstract class RecordsSource {
  abstract for(context: CallContext): GovernedRecords;
}
