import type { Agent, CallTelemetry } from '#core';
import type { Authenticator } from '#auth';
import type { SessionStore } from '#state';
import type { Kernel, WarningLog } from '#dispatcher';
import type { Telemetry } from '#telemetry';
import type { Wire } from '../sessions/wire.js';
import type { KeepAlives } from '../sse/event-stream.js';
import type { OpenStreams } from '../sse/open-streams.js';
import type { PendingBodies, UnreadAnswers } from './client-memory.js';
import type { EdgeSettings } from './edge-options.js';

/** The current load of an edge, and its errors since the start. */
export class EdgeCounts {
  /** Calls whose client receives a stream; one whose client left counts until it ends. */
  dispatchers = 0;
  /** Listening streams that are open. */
  listeningStreams = 0;
  /** Files that are being sent. */
  downloads = 0;
  /** Calls that still ran when their client left, since the start. */
  abandonedDispatchers = 0;
}

/** The caller that requests a file, and how long it waits. */
export interface DownloadCall {
  readonly agent: Agent;
  /** Aborted when the client goes away or the service closes. */
  readonly signal: AbortSignal;
  /** `[A-Za-z0-9._-]{1,128}`, as sent. */
  readonly correlationId?: string;
  /** Absent where nothing is measured. */
  readonly telemetry?: CallTelemetry;
}

/** A file that is created while it is sent. */
export interface Download {
  /** Letters, digits, `_`, `-` and dots. */
  readonly fileName: string;
  readonly mimeType: string;
  /**
   * The file in chunks, each created when it is requested. An early end aborts the work for it; an error means that the file
   * is incomplete. @throws Refused, Unauthorized
   */
  readonly pieces: AsyncGenerator<string, void, undefined>;
}

/** Files under ids that only their owner may use: for any other caller there is no such file. */
export abstract class Downloads {
  /** Reads no data of the file yet. @throws Refused when the caller may not read it now */
  abstract open(id: string, call: DownloadCall): Promise<Download | undefined>;
  /** Revokes the file. @returns false when this caller has no such file */
  abstract revoke(id: string, agent: Agent): Promise<boolean>;
}

/** A client that left before it received its answer. */
export interface AbandonedDispatch {
  readonly reason: 'client_disconnect';
  /** False: the answer was ready and could not be delivered. */
  readonly dispatcher_alive: boolean;
  readonly request_id: unknown;
}

/** The dependencies of the checks. */
export interface EdgeDependencies {
  readonly settings: EdgeSettings;
  readonly kernel: Kernel;
  readonly authenticator: Authenticator;
  readonly sessions: SessionStore;
  readonly wire: Wire;
  readonly keepAlives: KeepAlives;
  readonly counts: EdgeCounts;
  readonly openStreams: OpenStreams;
  /** Bodies that are being read or processed. */
  readonly pendingBodies: PendingBodies;
  /** Answers that clients have not read yet. */
  readonly unread: UnreadAnswers;
  /** Absent where no files are served. */
  readonly downloads: Downloads | undefined;
  readonly onAbandoned: (dispatch: AbandonedDispatch) => void;
  /** Absent where nothing is measured. */
  readonly telemetry: Telemetry | undefined;
  readonly log: WarningLog;
  /** False once the edge is closing. */
  readonly accepting: boolean;
}
