import type { CallContext, LogLevel } from '#agent';
import type { ClientLink } from './client-link.js';
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
