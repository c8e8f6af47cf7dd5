import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import type { Agent, CallTelemetry } from '#core';
import { Authenticator } from '#auth';
import { SessionStore } from '#state';
import { Kernel, type WarningLog } from '#dispatcher';
import { Telemetry } from '#telemetry';
import { Wire } from '../sessions/wire.js';
import { KeepAlives } from '../sse/event-stream.js';
import { OpenStreams } from '../sse/open-streams.js';
import { PendingBodies, UnreadAnswers } from './client-memory.js';
import { EdgeSettings } from './edge-options.js';

/** The current load of an edge, and its errors since the start. */
class EdgeCounts {
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

/** What all requests of an edge share. */
@Injectable()
export class EdgeDependencies {
  readonly keepAlives: KeepAlives;
  readonly counts = new EdgeCounts();
  readonly openStreams: OpenStreams;
  /** Bodies that are being read or processed. */
  readonly pendingBodies = new PendingBodies();
  /** Answers that clients have not read yet. */
  readonly unread: UnreadAnswers;
  readonly log: WarningLog;
  /** False once the edge is closing. */
  accepting = true;

  /** @param downloads absent where no files are served. @param telemetry null where nothing is measured */
  constructor(
    readonly settings: EdgeSettings,
    readonly kernel: Kernel,
    readonly authenticator: Authenticator,
    readonly sessions: SessionStore,
    readonly wire: Wire,
    private readonly events: EventEmitter2,
    @Optional() @Inject(Telemetry) readonly telemetry: Telemetry | null = null,
    @Optional() @Inject(Downloads) readonly downloads?: Downloads,
    @Optional() log: WarningLog = new Logger('McpEdge'),
  ) {
    this.log = harmless(log);
    this.keepAlives = new KeepAlives(settings.heartbeatInterval);
    this.openStreams = new OpenStreams(authenticator, settings.credentialsInterval, this.log);
    this.unread = new UnreadAnswers({ timeout: settings.readerTimeout, perCaller: settings.maxUnread });
  }

  /** Called for every client that left before its answer. */
  onAbandoned(dispatch: AbandonedDispatch): void {
    this.events.emit('parse.agent.mcp_dispatcher_abandoned', dispatch);
  }
}

/** A log that fails must not fail the request. */
function harmless(log: WarningLog): WarningLog {
  return {
    warn: (line) => {
      try {
        log.warn(line);
      } catch {
        // A log that fails has no other place to report to.
      }
    },
  };
}
