import type { Agent } from './agent.js';
import type { ClientRequests, ClientLink } from './client-requests.js';

/** `legacy`: revisions that open with `initialize`. `modern`: every request contains its own version and capabilities. */
export type Era = 'legacy' | 'modern';

/**
 * Work that may have to end before it is done: a request, a call, an operation at a store. A Node `AbortSignal` and each of its
 * listeners cost as much as some gates, and most calls end without one: what only asks or listens uses `isAborted` and
 * `whenAborted`, which make no signal (docs/contributing/decisions/0032-signals-when-read.md).
 */
export interface Abortable {
  /** Aborts when the work has to end. Its reason says why. */
  readonly signal: AbortSignal;
  /** Whether `signal` has aborted, for work that makes its signal when it is first read. Default: ask the signal. */
  readonly aborted?: boolean;
  /**
   * Calls the listener once when the work has to end. Default: an event of the signal.
   * @returns removes the listener
   */
  readonly onAbort?: (listener: () => void) => () => void;
}

/** Whether the work has to end. A signal that nobody listens to is not made for the question. */
export function isAborted(work: Abortable): boolean {
  return work.aborted ?? work.signal.aborted;
}

/** Calls the listener once when the work has to end. @returns removes the listener */
export function whenAborted(work: Abortable, listener: () => void): () => void {
  if (work.onAbort) return work.onAbort(listener);
  const { signal } = work;
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}

/** Makes its signal when it is first read. */
export class LazyAbort<Reason = unknown> implements Abortable {
  private controller: AbortController | null = null;
  private because: { readonly reason: Reason } | null = null;
  /** An array: a set whose members come and go keeps its former tables alive. */
  private listeners: (() => void)[] = [];

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.because) this.controller.abort(this.because.reason);
    }
    return this.controller.signal;
  }

  get aborted(): boolean {
    return this.because !== null;
  }

  /** The reason of the abort; undefined: it was not aborted. */
  get reason(): Reason | undefined {
    return this.because?.reason;
  }

  /** The first reason stays. */
  abort(reason: Reason): void {
    if (this.because) return;
    this.because = { reason };
    this.controller?.abort(reason);
    const { listeners } = this;
    this.listeners = [];
    for (const listener of listeners) listener();
  }

  onAbort(listener: () => void): () => void {
    this.listeners.push(listener);
    return () => this.remove(listener);
  }

  private remove(listener: () => void): void {
    const at = this.listeners.indexOf(listener);
    if (at !== -1) this.listeners.splice(at, 1);
  }
}

/**
 * One request of a caller, from the edge to the database: who calls, in which revision, until when, and the way back to the client.
 * It is made once per request; a request that acts for another agent, or in the background, is derived from it
 * (`deriveRequest`). Three optional observers come with it, none of which can change a decision: `CallTrace` receives
 * decisions, `DataMeter` database operations, `CallTelemetry` what traces and metrics need.
 */
export interface RequestContext extends Abortable {
  /** The caller, its rights and its limits. */
  readonly agent: Agent;
  /** Aborts when the client disconnects or cancels, or the timeout expires. */
  readonly signal: AbortSignal;
  /** `[A-Za-z0-9._-]{1,128}`; connects audit records and database comments. Never an identity. */
  readonly correlationId?: string | undefined;
  /** Receives the decisions of the gates. Default none. */
  readonly trace?: CallTrace | undefined;
  /** Absent when nothing limits or measures what the call uses. */
  readonly meter?: DataMeter | undefined;
  /**
   * Takes a remark for the answer, such as that a text was compared as text. Absent where an answer has no place for one.
   * @internal
   */
  readonly note?: ((text: string) => void) | undefined;
  /** Absent when neither traces nor metrics are collected. */
  readonly telemetry?: CallTelemetry | undefined;
  /** Requests to the client: elicitation, sampling, roots. Absent when none can be sent. */
  readonly clientRequests?: ClientRequests | undefined;
  /**
   * `offered`: the call may become a task that continues in the background. `running`: this is such a task, whose call
   * was counted and approved. Absent: neither (docs/guide/tasks.md).
   */
  readonly background?: 'offered' | 'running' | undefined;
  /** Who approved the call, when this is a later run of it. */
  readonly approver?: string | undefined;
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
  /** Sends progress. Does nothing when the transport cannot carry it or `progress` is not finite. Never throws. */
  progress(update: ProgressUpdate): void;
  /** Sends a log message, when the client requested that level. Absent when the transport can only carry the response. */
  readonly log?: ((entry: LogEntry) => void) | undefined;
  /**
   * Closes the response stream while the call continues: the client reconnects for the rest. Absent when it could not.
   */
  readonly endStream?: (() => void) | undefined;
}

/** What a derived request has of its own. */
export type RequestChanges = Partial<
  Pick<RequestContext, 'agent' | 'clientRequests' | 'background' | 'meter'>
>;

/** The same request with other members: its signal, and everything it reports, are those of the request itself. */
export function deriveRequest(request: RequestContext, changes: RequestChanges): RequestContext {
  return new DerivedRequest(request, changes);
}

/** The context of the same request for a sub-agent: only the agent differs. */
export function actAs(context: RequestContext, agent: Agent): RequestContext {
  return new DerivedRequest(context, { agent });
}

class DerivedRequest implements RequestContext {
  readonly agent: Agent;
  readonly correlationId: string | undefined;
  readonly trace: CallTrace | undefined;
  readonly meter: DataMeter | undefined;
  readonly telemetry: CallTelemetry | undefined;
  readonly clientRequests: ClientRequests | undefined;
  readonly background: RequestContext['background'];
  readonly approver: string | undefined;
  readonly sessionId: string | undefined;
  readonly requestId: unknown;
  readonly link: ClientLink | undefined;
  readonly setLogLevel: RequestContext['setLogLevel'];
  readonly parameterHeader: RequestContext['parameterHeader'];
  readonly log: RequestContext['log'];
  readonly endStream: RequestContext['endStream'];
  readonly era: Era | undefined;
  readonly version: string | undefined;
  readonly clientCapabilities: RequestContext['clientCapabilities'];

  constructor(
    private readonly request: RequestContext,
    changes: RequestChanges,
  ) {
    this.agent = changes.agent ?? request.agent;
    this.correlationId = request.correlationId;
    this.trace = request.trace;
    this.meter = changes.meter ?? request.meter;
    this.telemetry = request.telemetry;
    this.clientRequests = changes.clientRequests ?? request.clientRequests;
    this.background = changes.background ?? request.background;
    this.approver = request.approver;
    this.sessionId = request.sessionId;
    this.requestId = request.requestId;
    this.link = request.link;
    this.setLogLevel = request.setLogLevel;
    this.parameterHeader = request.parameterHeader;
    this.log = request.log && ((entry) => request.log?.(entry));
    this.endStream = request.endStream && (() => request.endStream?.());
    this.era = request.era;
    this.version = request.version;
    this.clientCapabilities = request.clientCapabilities;
  }

  get signal(): AbortSignal {
    return this.request.signal;
  }

  get asks(): ClientRequests | undefined {
    return this.clientRequests;
  }

  get aborted(): boolean {
    return isAborted(this.request);
  }

  onAbort(listener: () => void): () => void {
    return whenAborted(this.request, listener);
  }

  /** Also where it is taken out of the object. */
  readonly progress = (update: ProgressUpdate): void => this.request.progress(update);
}

/** A request without a client: of a simulation, or of work that the service does for itself. Its reports are dropped. */
export class InternalRequest implements RequestContext {
  private readonly never = new LazyAbort();

  readonly trace: CallTrace | undefined;
  readonly correlationId: string | undefined;

  constructor(
    readonly agent: Agent,
    { trace, correlationId }: Pick<RequestContext, 'trace' | 'correlationId'> = {},
  ) {
    this.trace = trace;
    this.correlationId = correlationId;
  }

  get aborted(): boolean {
    return false;
  }

  get signal(): AbortSignal {
    return this.never.signal;
  }

  progress(): void {}
}

const CORRELATION_ID = /^[A-Za-z0-9._-]+$/;

/** Whether the value is a valid correlation id. */
export function isCorrelationId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 128 && CORRELATION_ID.test(value);
}

/** Drops an id with other characters and cuts a long one to 128. */
export function sanitizeCorrelationId(value: string | undefined): string | undefined {
  return value !== undefined && CORRELATION_ID.test(value) ? value.slice(0, 128) : undefined;
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
 * @returns null without a finite `progress`
 */
export function readProgress(update: unknown): ProgressUpdate | null {
  if (update === null || typeof update !== 'object') return null;
  const { progress, total, message } = update as Record<string, unknown>;
  if (typeof progress !== 'number' || !Number.isFinite(progress)) return null;
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

/** The rule behind a row limit that the caller did not write. */
export type LimitOrigin = 'tenant' | 'agent filter' | 'canonical filter' | 'row rights';

/**
 * Receives the decisions of one call from the code that makes them; it cannot change them. Present in simulations and in
 * calls whose trace is recorded.
 */
export interface CallTrace {
  /** The gate passed the call. @param subject the class that it checked, if any */
  notePassed(gate: string, subject?: string): void;
  /** Every row that is read of the class must match this. */
  noteLimit(className: string, origin: LimitOrigin, where: Readonly<Record<string, unknown>>): void;
  /** The masks of these fields of the class: path and description. */
  noteMasks(className: string, fields: ReadonlyMap<string, string>): void;
}

/** A database operation: its kind and its class, never a value. */
export interface DataOperation {
  readonly name:
    | 'find'
    | 'count'
    | 'aggregate'
    | 'related'
    | 'explain'
    | 'create'
    | 'update'
    | 'delete'
    | 'search'
    | 'facets'
    | 'nearest';
  readonly className: string;
}

/** @param error what the operation failed with; absent when it succeeded */
export type OperationEnded = (rows: number, error?: unknown) => void;

/** Receives the database operations of one call as they happen. */
export interface DataMeter {
  /** An operation starts. @returns called once at its end, with the number of rows that it returned */
  begins(operation: DataOperation): OperationEnded;
  /** The class gate passed a class that the call reaches from another one: by a join, an include, a subquery or a pointer. */
  reaches?(className: string): void;
}

/** How a tool call ended, in the members of its audit record: names and counts, never a value. */
export interface ToolEnding {
  readonly success: boolean;
  readonly duration_ms: number;
  readonly error_code?: string;
  readonly gate?: string;
  readonly denial_kind?: string;
  readonly result_size?: number;
  readonly est_input_tokens?: number;
  readonly est_cost_usd?: number;
  readonly embed_calls?: number;
  readonly embed_tokens?: number;
  readonly embed_cost_usd?: number;
}

/** The observers of one tool call. */
export interface ToolTelemetry {
  readonly trace?: CallTrace | undefined;
  readonly meter?: DataMeter | undefined;
  /** Every gate passed the call: its handler starts now. */
  begins(): void;
  /** Only the first counts. Without `ending` the call continues elsewhere, or waits for its client. */
  ends(ending?: ToolEnding): void;
  /** Runs work of the call so that spans of its own code become children of the call's span. */
  within<T>(work: () => T): T;
}

/**
 * Receives what traces and metrics need of one request: names, counts and outcomes, never a value. It changes nothing and
 * never throws.
 */
export interface CallTelemetry {
  /** 32 lower-case hexadecimal digits; absent when no traces are made. */
  readonly traceId?: string | undefined;
  /** W3C `traceparent` of the call, for work that continues after it. */
  readonly traceParent?: string | undefined;
  readonly trace?: CallTrace | undefined;
  readonly meter?: DataMeter | undefined;
  tool(name: string): ToolTelemetry;
}
