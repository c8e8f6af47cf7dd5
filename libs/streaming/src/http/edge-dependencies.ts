import { cutText } from '#core';
import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { oneLine } from '#audit';
import { Authenticator } from '#auth';
import type { Agent, CallTelemetry, RateLimiter } from '#core';
import { Kernel, type WarningLog } from '#dispatcher';
import { SessionStore } from '#state';
import { Telemetry } from '#telemetry';
import { Wire } from '../sessions/wire.js';
import { KeepAlives } from '../sse/event-stream.js';
import { OpenStreams } from '../sse/open-streams.js';
import { HostPolicy, OriginPolicy, StreamPlaces } from './admission.js';
import { PendingBodies, UnreadAnswers } from './client-memory.js';
import { RefusalPace } from './refusal-pace.js';

interface CustomHeader {
  /** Lower case. */
  readonly name: string;
  /** `null`: any value that is not empty. */
  readonly value: string | null;
}

/** What an edge is given in other forms than it uses. */
interface GivenForms {
  /** Whole origins, or `.example.com` for a domain with its subdomains. Default: any. */
  readonly allowedOrigins?: readonly string[];
  /** Host names besides loopback ones, with a port only where the port matters. Default: any, but see `loopbackHosts`. */
  readonly allowedHosts?: readonly string[];
  /** A header every POST must carry, by name, or as `{ name: value }`. Default: none. */
  readonly requireCustomHeader?: string | Readonly<Record<string, string>> | null;
  /** Without `allowedHosts`, only loopback names are allowed: for a server bound to loopback. Default true. */
  readonly loopbackHosts?: boolean;
  /**
   * Without `allowedOrigins`, only pages of this machine are allowed: for a server without authentication, where any page
   * could otherwise act for its visitor. Default true.
   */
  readonly loopbackOrigins?: boolean;
}

export type McpEdgeOptions = GivenForms & Partial<Omit<EdgeSettings, 'origins' | 'hosts' | 'customHeader'>>;

function readCustomHeader(wanted: McpEdgeOptions['requireCustomHeader']): CustomHeader | null {
  const [name, value] = (typeof wanted === 'string' ? [wanted, null] : Object.entries(wanted ?? {})[0]) ?? [];
  return name === undefined ? null : { name: name.trim().toLowerCase(), value: value ?? null };
}

/** The options of an edge, which the configuration has checked. */
export class EdgeSettings {
  /** Where MCP is served; one trailing slash is tolerated. */
  readonly path: string = '/mcp';
  /** Bytes. */
  readonly maxBodySize: number = 1_048_576;
  /** Refuse bodies of undeclared length before reading them. */
  readonly requireContentLength: boolean = true;
  readonly origins: OriginPolicy;
  readonly hosts: HostPolicy;
  readonly customHeader: CustomHeader | null;
  /** Charged per remote address before any expensive check. */
  readonly preAuthRateLimiter: RateLimiter | null = null;
  /** `strict`: a session id is required and must be known. `lenient`: an unknown one is a mere label. */
  readonly sessions: 'lenient' | 'strict' = 'lenient';
  /** Charged per principal by every message except `ping` and calls of tools, which have limits of their own. */
  readonly requestLimiter: RateLimiter | null = null;
  /** Milliseconds a body may take to arrive. */
  readonly bodyTimeout: number = 30_000;
  /** False: every answer is one body, whatever the client accepts. */
  readonly streaming: boolean = true;
  /** Milliseconds between keep-alives on an open stream; 0 or less: none. */
  readonly heartbeatInterval: number = 2_000;
  /** Milliseconds between two checks of the credentials that streams were opened with. */
  readonly credentialsInterval: number = 10_000;
  /** Streamed answers, and separately listening streams, served at once, a quarter to one principal; null: unbounded. */
  readonly maxConcurrentDispatchers: number | null = 100;
  /** Bytes that may wait for the reader of a stream before the stream is closed. */
  readonly maxStreamBuffer: number = 1_048_576;
  /** Milliseconds for which a reader of any answer may accept nothing of what waits for it before its connection is closed. */
  readonly readerTimeout: number = 30_000;
  /** Bytes of answers that may wait for the readers of one principal, or of an address before authentication. */
  readonly maxUnread: number = 33_554_432;
  /** Milliseconds for which the reader of a file may accept nothing before the transfer is aborted. */
  readonly downloadTimeout: number = 60_000;
  /** Maximum messages in one body, where the revision has batches. */
  readonly maxBatchSize: number = 50;

  constructor({
    allowedOrigins = [],
    allowedHosts = [],
    requireCustomHeader = null,
    loopbackHosts = true,
    loopbackOrigins = true,
    ...others
  }: McpEdgeOptions = {}) {
    this.origins = new OriginPolicy(allowedOrigins, loopbackOrigins);
    this.hosts = new HostPolicy(allowedHosts, loopbackHosts);
    this.customHeader = readCustomHeader(requireCustomHeader);
    Object.assign(this, others);
  }
}

/** The current load of an edge, and its errors since the start. */
class EdgeCounts {
  /** Calls whose client receives a stream; one whose client left counts until it ends. */
  readonly dispatchers: StreamPlaces;
  readonly listeningStreams: StreamPlaces;
  /** Files that are being sent. */
  readonly downloads: StreamPlaces;
  /** Calls that still ran when their client left, since the start. */
  abandonedDispatchers = 0;

  /** @param places of each kind of streams; null: unbounded */
  constructor(places: number | null) {
    this.dispatchers = new StreamPlaces(places);
    this.listeningStreams = new StreamPlaces(places);
    this.downloads = new StreamPlaces(places);
  }
}

/** The caller that requests a file, and how long it waits. */
export interface DownloadCall {
  readonly agent: Agent;
  /** Aborted when the client goes away or the service closes. */
  readonly signal: AbortSignal;
  /** `[A-Za-z0-9._-]{1,128}`, as sent. */
  readonly correlationId?: string;
  /** `X-Request-Id`. */
  readonly httpRequestId?: string;
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

/** Refused hosts and origins that are logged, of each, and their characters: callers choose them. */
const MAX_REFUSED = 20;
const MAX_NAME = 300;

/** What all requests of an edge share. */
@Injectable()
export class EdgeDependencies {
  readonly keepAlives: KeepAlives;
  readonly counts: EdgeCounts;
  readonly openStreams: OpenStreams;
  /** Bodies that are being read or processed. */
  readonly pendingBodies = new PendingBodies();
  readonly refusalPace = new RefusalPace();
  /** Answers that clients have not read yet. */
  readonly unread: UnreadAnswers;
  readonly log: WarningLog;
  private readonly refusedHosts = new Set<string>();
  private readonly refusedOrigins = new Set<string>();
  /** False once the edge is closing. */
  accepting = true;

  /** @param telemetry null where nothing is measured */
  constructor(
    readonly settings: EdgeSettings,
    readonly kernel: Kernel,
    readonly authenticator: Authenticator,
    readonly sessions: SessionStore,
    readonly wire: Wire,
    private readonly events: EventEmitter2,
    @Inject(Telemetry) readonly telemetry: Telemetry | null,
    readonly downloads: Downloads,
    @Optional() log: WarningLog = new Logger('McpEdge'),
  ) {
    this.log = harmless(log);
    this.counts = new EdgeCounts(settings.maxConcurrentDispatchers);
    this.keepAlives = new KeepAlives(settings.heartbeatInterval);
    this.openStreams = new OpenStreams(authenticator, settings.credentialsInterval, this.log);
    const { suspended } = wire;
    // Files that are being sent as well.
    suspended.changes.subscribe(() => this.openStreams.shutDown((_, agent) => suspended.isSuspended(agent)));
    this.unread = new UnreadAnswers({ timeout: settings.readerTimeout, perCaller: settings.maxUnread });
  }

  /** Logs each refused name once: a deployment behind a proxy must list its own. */
  onHostRefused(host = ''): void {
    this.logOnce(this.refusedHosts, host, (name) => `Host refused: ${name} (server.allowedHosts)`);
  }

  /** Logs each refused origin once: a browser tells its page nothing, and an application expects its own CORS here. */
  onOriginRefused(origin = ''): void {
    this.logOnce(
      this.refusedOrigins,
      origin,
      (name) =>
        `Origin refused: ${name} (server.allowedOrigins; CORS of an application does not apply to MCP)`,
    );
  }

  private logOnce(logged: Set<string>, value: string, line: (name: string) => string): void {
    const name = cutText(value, MAX_NAME);
    if (logged.has(name) || logged.size >= MAX_REFUSED) return;
    logged.add(name);
    this.log.warn(line(oneLine(JSON.stringify(name))));
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
