import { cutText } from './text.js';
import { Agent } from './agent.js';
import { type Abortable, isAborted, LazyAbort, whenAborted } from './abortable.js';
import type { CallTelemetry, CallTrace, DataMeter } from './call-observers.js';
import type { ClientLink, ClientRequests } from './client-requests.js';

/** `legacy`: revisions that open with `initialize`. `modern`: every request contains its own version and capabilities. */
export type Era = 'legacy' | 'modern';

/**
 * What a transport knows of a request: when it has to end, what its client declared, and the ways back to the client. A function of it
 * may be taken out of the object.
 */
export interface RequestTransport extends Abortable {
  /** `[A-Za-z0-9._-]{1,128}`; connects audit records and database comments. Never an identity. Default none. */
  readonly correlationId?: string | undefined;
  /** `X-Request-Id` of the HTTP request, `[A-Za-z0-9._-]{1,128}`; its answer carries it. Absent for other transports. */
  readonly httpRequestId?: string | undefined;
  /** Absent when neither traces nor metrics are collected. */
  readonly telemetry?: CallTelemetry | undefined;
  /** Default `legacy`. */
  readonly era?: Era | undefined;
  /** The protocol revision: `2025-11-25`. Default: the one for a client that names none. */
  readonly version?: string | undefined;
  /** The declared client capabilities: from `initialize`, or from this request in the stateless era. Default none. */
  readonly clientCapabilities?: Readonly<Record<string, unknown>> | undefined;
  /**
   * The caller's own live session. Absent for a label only: a caller that does not own the id cannot use its session.
   */
  readonly sessionId?: string | undefined;
  /** The JSON-RPC id; absent for a notification. */
  readonly requestId?: unknown;
  /** Absent when the transport can send only the answer. */
  readonly link?: ClientLink | undefined;
  /** Stores the log level that the session receives from now on. Absent without a session. */
  readonly setLogLevel?: ((level: LogLevel) => Promise<void>) | undefined;
  /** Reads the `Mcp-Param-<name>` header. Absent when the transport has no headers; the check is then skipped. */
  readonly parameterHeader?: ((name: string) => string | undefined) | undefined;
  /** Sends progress. Absent when the transport cannot carry it. */
  readonly progress?: ((update: ProgressUpdate) => void) | undefined;
  /** Sends a log message, when the client requested that level. Absent when the transport can only carry the response. */
  readonly log?: ((entry: LogEntry) => void) | undefined;
  /**
   * Closes the response stream while the call continues: the client reconnects for the rest. Absent when it could not.
   */
  readonly endStream?: (() => void) | undefined;
}

/** The approval that a call needed. */
export interface CallApproval {
  /** The principal who approved it; absent when nobody did. */
  readonly by?: string | undefined;
  /** The id under which another person was asked. */
  readonly id?: string | undefined;
  /** The version of the policy under which it was given. */
  readonly policyVersion?: string | undefined;
  /** The change set that was approved, and the digest of what was in it. */
  readonly changes?: { readonly id: string; readonly digest: string } | undefined;
}

/** What a request has besides its caller and its transport. */
export interface RequestOptions {
  /** Requests to the client: elicitation, sampling, roots. Default: none can be sent. */
  readonly clientRequests?: ClientRequests | undefined;
  /**
   * `offered`: the call may become a task that continues in the background. `running`: this is such a task, whose call
   * was counted and approved. Default: neither (docs/guide/tasks.md).
   */
  readonly background?: 'offered' | 'running' | undefined;
  /** The approval of the call, when this is a later run of it. */
  readonly approval?: CallApproval | undefined;
  /**
   * Awaited before a tool runs that may change data: what it rejects with ends the call. Default: nobody needs to know.
   * @internal
   */
  readonly beforeChange?: (() => Promise<void>) | undefined;
  /**
   * Awaited before the outcome of the call itself is recorded: false where another run of the call goes on to its end. Default: this is
   * the only one.
   * @internal
   */
  readonly claimEnd?: (() => Promise<boolean>) | undefined;
  /** Receives the decisions of the gates. Default: that of the telemetry. */
  readonly trace?: CallTrace | undefined;
  /** Default: that of the telemetry. Absent when nothing limits or measures what the call uses. */
  readonly meter?: DataMeter | undefined;
}

/**
 * One request of a caller, from the edge to the database: who calls, and by what. A request that acts for another agent, or in
 * the background, is the same with other options (`with`). Three optional observers come with it, none of which can change a decision: `CallTrace`
 * receives decisions, `DataMeter` database operations, `CallTelemetry` what traces and metrics need.
 */
export class McpRequest implements Abortable, RequestOptions {
  /** As in `RequestTransport`. */
  readonly correlationId: string | undefined;
  /** As in `RequestTransport`. */
  readonly httpRequestId: string | undefined;
  /** As in `RequestTransport`. */
  readonly telemetry: CallTelemetry | undefined;
  /** As in `RequestOptions`. */
  readonly clientRequests: ClientRequests | undefined;
  /** As in `RequestOptions`. */
  readonly background: RequestOptions['background'];
  /** As in `RequestOptions`. */
  readonly approval: CallApproval | undefined;
  /** As in `RequestOptions`. @internal */
  readonly beforeChange: RequestOptions['beforeChange'];
  /** As in `RequestOptions`. @internal */
  readonly claimEnd: RequestOptions['claimEnd'];
  /** As in `RequestOptions`. */
  readonly trace: CallTrace | undefined;
  /** As in `RequestOptions`. */
  readonly meter: DataMeter | undefined;

  /** @param transport default: none, as of work that the service does for itself; its reports are dropped, and nothing ends it */
  constructor(
    /** The caller, its rights and its limits. */
    readonly agent: Agent,
    /** What its transport knows of it. */
    readonly transport: RequestTransport = new LazyAbort(),
    /** What was given, without defaults. */
    protected readonly options: RequestOptions = {},
  ) {
    this.correlationId = transport.correlationId;
    this.httpRequestId = transport.httpRequestId;
    this.telemetry = transport.telemetry;
    this.clientRequests = options.clientRequests;
    this.background = options.background;
    this.approval = options.approval;
    this.beforeChange = options.beforeChange;
    this.claimEnd = options.claimEnd;
    this.trace = options.trace ?? transport.telemetry?.trace;
    this.meter = options.meter ?? transport.telemetry?.meter;
  }

  /** The same request for another agent, or with other options: what ends it, and what it reports to, are those of this one. */
  with({ agent = this.agent, ...changes }: RequestOptions & { readonly agent?: Agent }): McpRequest {
    return new McpRequest(agent, this.transport, { ...this.options, ...changes });
  }

  /** As in `RequestTransport`. */
  get sessionId(): string | undefined {
    return this.transport.sessionId;
  }

  /** Aborts when the client disconnects or cancels, or the timeout expires. */
  get signal(): AbortSignal {
    return this.transport.signal;
  }

  /** Whether `signal` has aborted. */
  get aborted(): boolean {
    return isAborted(this.transport);
  }

  /** Calls the listener once when `signal` aborts. @returns removes the listener */
  onAbort(listener: () => void): () => void {
    return whenAborted(this.transport, listener);
  }

  /** Sends progress, where the transport carries it. May be taken out of the object. @throws TypeError without a finite `progress` */
  get progress(): (update: ProgressUpdate) => void {
    return (update) => {
      const report = readProgress(update);
      this.transport.progress?.(report);
    };
  }

  /** As in `RequestTransport`. */
  get log(): RequestTransport['log'] {
    return this.transport.log;
  }

  /** As in `RequestTransport`. */
  get endStream(): RequestTransport['endStream'] {
    return this.transport.endStream;
  }

  /**
   * Takes a remark for the answer, such as that a text was compared as text. Absent where an answer has no place for one.
   * @internal
   */
  get note(): ((text: string) => void) | undefined {
    return undefined;
  }
}

/** Who calls from code: an agent, one with what its call reports to, or the call that runs. */
export type CodeCaller =
  | McpRequest
  | Agent
  | ({ readonly agent: Agent } & Partial<
      Pick<RequestTransport, 'signal' | 'progress' | 'log' | 'correlationId'>
    >);

const MEMBERS: readonly string[] = ['agent', 'signal', 'progress', 'log', 'correlationId'];

/**
 * The request of a caller in code. One without a call of its own ends by its time-out alone.
 * @throws TypeError for what names no agent, and for unknown members
 */
export function toRequest(caller: CodeCaller): McpRequest {
  if (caller instanceof McpRequest) return caller;
  const given: unknown = caller instanceof Agent ? { agent: caller } : caller;
  const { agent, signal, ...reports } = (given ?? {}) as Exclude<CodeCaller, McpRequest | Agent>;
  if (!((agent as unknown) instanceof Agent))
    throw new TypeError('expected an agent, as agentFor returns, { agent }, or the call that runs');
  const unknown = Object.keys(given as object).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined)
    throw new TypeError(
      `unknown option '${unknown}' beside agent; there are: ${MEMBERS.slice(1).join(', ')}`,
    );
  const correlationId = reports.correlationId ?? agent.correlationId ?? undefined;
  const transport: RequestTransport = signal ? { signal } : new LazyAbort();
  return new McpRequest(agent, Object.assign(transport, reports, { correlationId }));
}

const CORRELATION_ID = /^[A-Za-z0-9._-]+$/;

/** Whether the value is a valid correlation id. */
export function isCorrelationId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 128 && CORRELATION_ID.test(value);
}

/** Drops an id with other characters and cuts a long one to 128. */
export function sanitizeCorrelationId(value: string | undefined): string | undefined {
  return value !== undefined && CORRELATION_ID.test(value) ? cutText(value, 128) : undefined;
}

/** The progress of a call. */
export interface ProgressUpdate {
  /** Grows with every update. */
  readonly progress: number;
  /** The final value of `progress`. Default: unknown. */
  readonly total?: number;
  /** Shown to the user. Default none. */
  readonly message?: string;
}

/**
 * The progress that a tool reported, as it may be sent. Members of another type are left out.
 * @throws TypeError without a finite `progress`
 */
function readProgress(update: unknown): ProgressUpdate {
  const { progress, total, message } = Object(update) as Record<string, unknown>;
  if (typeof progress !== 'number' || !Number.isFinite(progress))
    throw new TypeError('progress takes { progress, total, message }, where progress is a finite number');
  return {
    progress,
    ...(typeof total === 'number' && Number.isFinite(total) && { total }),
    ...(typeof message === 'string' && { message }),
  };
}

/** From the least to the most urgent (RFC 5424). */
export const LOG_LEVELS = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export function isLogLevel(value: unknown): value is LogLevel {
  return LOG_LEVELS.includes(value as LogLevel);
}

/** A log message from a running call to its client. */
export interface LogEntry {
  /** Its severity; the client may have requested a higher minimum. */
  readonly level: LogLevel;
  /** Any JSON value. */
  readonly data: unknown;
  /** The name of the logger. Default none. */
  readonly logger?: string;
}

/** What a running call reports to its client beside its answer. */
export type CallUpdate =
  | { readonly kind: 'progress'; readonly update: ProgressUpdate }
  | { readonly kind: 'log'; readonly entry: LogEntry };
