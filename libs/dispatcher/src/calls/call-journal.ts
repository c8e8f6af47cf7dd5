import {
  type CallHandler,
  HttpException,
  Inject,
  Injectable,
  Logger,
  type NestInterceptor,
} from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { type Observable, tap } from 'rxjs';
import {
  ArgumentDigest,
  type AuditRecord,
  AuditSink,
  callRecord,
  OperationLog,
  type TaskEndEvent,
} from '#audit';
import {
  cutText,
  DEFAULT_RATE_LIMIT,
  describeError,
  type Agent,
  ClientUnreachable,
  type ErrorCode,
  MIN_RETRY_AFTER,
  type Refusal,
  refusals,
  Refused,
  type McpRequest,
  type ToolTelemetry,
  Unauthorized,
  member,
} from '#core';
import { Policies } from '#policy';
import type { ToolOutcome } from '#tools';
import { InputRequired } from '../client-requests/client-requests.js';
import { ProtocolError, RPC } from '../protocol.js';
import { type CallNotes, ContinuesAsTask, type ParleyToolCall } from './tool-call.js';

/** A call as callbacks receive it. `args` is a copy, so a callback cannot change the run. */
export interface AnnouncedCall {
  /** Name of the tool. */
  readonly tool: string;
  /** A copy of the arguments. */
  readonly args: unknown;
  /** The calling agent. */
  readonly agent: Agent;
}

type CalledTool = Pick<ParleyToolCall, 'name' | 'args' | 'agent'>;

/** Receives a call that passed every gate, before the tool runs. */
export type BeforeToolCall = (call: AnnouncedCall) => unknown;
/** Receives a call and its outcome. */
export type AfterToolCall = (call: AnnouncedCall, outcome: ToolOutcome) => unknown;
/** Receives the thrown error or the refusal, and the call. */
export type ToolCallError = (error: unknown, call: AnnouncedCall) => unknown;

/**
 * Callbacks of an application for tool calls, any number of each kind, called in the order they were added. They only
 * observe: no call waits for them, and a callback that fails is logged and ignored.
 */
@Injectable()
export class ToolCallbacks {
  private readonly logger = new Logger(ToolCallbacks.name);
  private readonly before: BeforeToolCall[] = [];
  private readonly after: AfterToolCall[] = [];
  private readonly failed: ToolCallError[] = [];

  /** Called after every gate, approval included, and before the tool runs. */
  beforeToolCall(callback: BeforeToolCall): this {
    this.before.push(callback);
    return this;
  }

  /** Called with the result for the caller, or with the cancellation of a call that had begun. */
  afterToolCall(callback: AfterToolCall): this {
    this.after.push(callback);
    return this;
  }

  /** Called with the thrown error or the returned refusal, including refusals by gates. */
  onError(callback: ToolCallError): this {
    this.failed.push(callback);
    return this;
  }

  /** @internal Called by the pipeline. */
  announceBefore(call: CalledTool): void {
    this.report(this.before, call, (callback, announcedCall) => callback(announcedCall));
  }

  /** @internal Called by the pipeline. */
  announceAfter(call: CalledTool, outcome: ToolOutcome): void {
    this.report(this.after, call, (callback, announcedCall) => callback(announcedCall, outcome));
  }

  /** @internal Called by the pipeline. */
  announceError(thrown: unknown, refusal: Refusal, call: CalledTool): void {
    if (this.failed.length === 0) return;
    const error = thrown ?? new Refused(refusal);
    this.report(this.failed, call, (callback, announcedCall) => callback(error, announcedCall));
  }

  private report<Callback>(
    callbacks: readonly Callback[],
    { name: tool, args, agent }: CalledTool,
    invoke: (callback: Callback, announced: AnnouncedCall) => unknown,
  ): void {
    for (const callback of callbacks) {
      void (async () => invoke(callback, { tool, args: structuredClone(args), agent }))().catch(
        (error: unknown) => this.logger.error(`a callback of '${tool}' failed: ${String(error)}`),
      );
    }
  }
}

/** Reports that every guard admitted the call. */
@Injectable()
export class BeforeCallInterceptor implements NestInterceptor<ToolOutcome, ToolOutcome> {
  readonly gate = 'before_callbacks';

  constructor(private readonly callbacks: ToolCallbacks) {}

  intercept(call: ParleyToolCall, next: CallHandler<ToolOutcome>): Observable<ToolOutcome> {
    // The callback runs when the task runs.
    if (!call.beginsTask) this.callbacks.announceBefore(call);
    call.trace?.notePassed(this.gate);
    return next.handle();
  }
}

/** The call begins here. Reports its result, or a cancellation after the start. */
@Injectable()
export class AfterCallInterceptor implements NestInterceptor<ToolOutcome, ToolOutcome> {
  constructor(private readonly callbacks: ToolCallbacks) {}

  intercept(call: ParleyToolCall, next: CallHandler<ToolOutcome>): Observable<ToolOutcome> {
    call.begin();
    return next.handle().pipe(
      tap({
        next: (outcome) => {
          if (outcome.ok) this.callbacks.announceAfter(call, outcome);
        },
        error: (error: unknown) => {
          if (error instanceof Refused && error.refusal.code === 'cancelled')
            this.callbacks.announceAfter(call, { ok: false, refusal: error.refusal });
        },
      }),
    );
  }
}

export interface FinishedRun {
  readonly tool: string;
  readonly args: unknown;
  readonly context: McpRequest;
  readonly outcome: ToolOutcome;
  readonly milliseconds: number;
  readonly notes: CallNotes;
  /** The same telemetry as in the audit record. */
  readonly observed?: ToolTelemetry | undefined;
}

/** Span for every record, including refusals by gates. */
const RECORDED_SPAN = 'parley.audit';
/** Span for records of calls that reached their tool. A call that a gate refused never ran. */
const CALL_SPAN = 'parse.agent.tool_call';

/**
 * Records the outcome of each call once per listener: audit record, events, operation log, error callbacks. A listener
 * that fails changes neither the outcome nor the input of the others.
 */
@Injectable()
export class CallJournal {
  private readonly logger = new Logger(CallJournal.name);

  /** @param digest null: the record contains no digest of the arguments */
  constructor(
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
    private readonly audit: AuditSink,
    @Inject(ArgumentDigest) private readonly digest: ArgumentDigest | null,
    private readonly log: OperationLog,
    private readonly callbacks: ToolCallbacks,
    private readonly events: EventEmitter2,
  ) {}

  /** @returns a promise when the answer must wait for the record. A rejection means that the record was not stored. */
  record(run: FinishedRun): Promise<void> | undefined {
    const { audit, events, log, callbacks } = this;
    const { tool, args, context, outcome, notes } = run;
    const { agent } = context;
    const entry = this.entryOf(run);
    const refusal = outcome.ok ? undefined : outcome.refusal;
    let kept: void | Promise<void> = undefined;
    this.write(tool, () => (kept = audit.record(entry, notes.begun ?? notes.reads ?? false)));
    run.observed?.ends(entry);
    this.write(tool, () => events.emit(RECORDED_SPAN, entry));
    if (notes.begun) this.write(tool, () => events.emit(CALL_SPAN, entry));
    this.write(tool, () => log.record({ tool, args, agent, ...(refusal && { refusal }) }));
    if (refusal) callbacks.announceError(notes.error, refusal, { name: tool, args, agent });
    return kept ?? undefined;
  }

  /** Records the outcome of a call whose agent no longer exists. */
  recordTaskEnd(event: TaskEndEvent): void {
    this.write(event.tool, () => this.audit.recordEvent(event));
  }

  private entryOf({ tool, args, context, outcome, milliseconds, notes }: FinishedRun): AuditRecord {
    const { version, switches, classes } = this.policies.of(context.agent);
    const { correlationId, telemetry } = context;
    return callRecord({
      tool,
      args,
      digest: this.digest,
      agent: context.agent,
      policyVersion: version,
      findDatabase: (className) => classes.get(className)?.database ?? undefined,
      prices: {
        input: switches.tokenCostPerMillionInput,
        embedding: switches.embedCostPerMillionTokens,
      },
      correlationId,
      requestId: context.httpRequestId,
      traceId: telemetry?.traceId,
      resultBytes: outcome.ok ? (notes.use?.bytes ?? Buffer.byteLength(outcome.text)) : null,
      use: notes.use,
      joined: notes.joined,
      approval: notes.approval,
      changeSet: notes.changeSet,
      writtenId: outcome.ok ? member(outcome.data, 'object_id') : undefined,
      embedding: notes.embedding,
      phrase: notes.phrase,
      milliseconds,
      refusal: outcome.ok ? undefined : outcome.refusal,
      errorClass: findClass(notes.error),
    });
  }

  private write(tool: string, work: () => unknown): void {
    try {
      work();
    } catch (error) {
      this.logger.error(`a listener to the record of '${tool}' failed: ${String(error)}`);
    }
  }
}

/** A returned refusal counts like a thrown one. */
function findClass(error: unknown): string {
  if (error === undefined) return Refused.name;
  // Its name is part of records, whatever the class is called.
  if (error instanceof ProtocolError) return error.name;
  return error instanceof Error ? error.constructor.name : typeof error;
}

export interface FailedRun {
  readonly refusal: Refusal;
  readonly error: unknown;
}

const isInterruption = (error: unknown): boolean =>
  error instanceof InputRequired || error instanceof ContinuesAsTask || error instanceof ProtocolError;

/** Converts an error of a run into the refusal that the caller receives. @throws errors that the run must not answer */
export function toFailedRun(error: unknown, tool: string): FailedRun {
  if (error instanceof Refused) return { refusal: error.refusal, error };
  // The transport answers Unauthorized; it is not a tool failure.
  if (error instanceof Unauthorized) throw error;
  // The run has no outcome yet: the client must act first, and the kernel answers it.
  if (isInterruption(error)) throw error;
  if (error instanceof ClientUnreachable) return { refusal: toUnanswered(error), error };
  const refusal = refusalByApplication(error);
  if (refusal) return { refusal, error };
  const cause = error instanceof Error ? `${error.name}: ${describeError(error)}` : String(error);
  return { refusal: refusals.internalError(tool, cause), error };
}

function toUnanswered({ reason }: ClientUnreachable): Refusal {
  return reason === 'aborted' ? refusals.cancelled() : refusals.clientUnreachable(reason);
}

/**
 * Converts a Nest HTTP exception of an application's guards, pipes and tools into a refusal. The agent receives the
 * message of a client error; a server error stays internal.
 */
function refusalByApplication(error: unknown): Refusal | null {
  if (!(error instanceof HttpException)) return null;
  const status = error.getStatus();
  if (status >= 500) return null;
  const message = readMessage(error);
  const code = CODES[status] ?? 'invalid_argument';
  if (code === 'invalid_argument') return refusals.invalidArgument(message, 'application');
  return {
    code,
    gate: 'application',
    message,
    ...(code === 'rate_limited' && { retryAfter: readRetryAfter(error) }),
  };
}

/** What a client error means, by its status; any other is about the request itself. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  401: 'access_denied',
  402: 'access_denied',
  403: 'access_denied',
  404: 'not_found',
  407: 'access_denied',
  408: 'timeout',
  409: 'conflict',
  410: 'not_found',
  412: 'conflict',
  423: 'conflict',
  428: 'conflict',
  429: 'rate_limited',
  451: 'access_denied',
};

/** Seconds, as the exception says in its response. */
function readRetryAfter(error: HttpException): number {
  const body = error.getResponse();
  const { retryAfter, retry_after: written = retryAfter } = (
    typeof body === 'object' ? body : {}
  ) as Readonly<Record<string, unknown>>;
  const seconds = Number(written);
  return written !== undefined && Number.isFinite(seconds) && seconds >= 0
    ? Math.max(seconds, MIN_RETRY_AFTER)
    : DEFAULT_RATE_LIMIT.window;
}

/** A ValidationPipe lists its findings in the body. */
function readMessage(error: HttpException): string {
  const body = error.getResponse();
  const message = typeof body === 'object' ? (body as { message?: unknown }).message : body;
  const text = Array.isArray(message) ? message.join('; ') : message;
  return cutText(typeof text === 'string' && text !== '' ? text : error.message, 500);
}

/**
 * The outcome of a call that ended in a protocol error instead of a tool result, for audit records. Null for a call
 * that has not ended: a client request, or a task that continues.
 */
export function refusalByProtocol(error: unknown): Refusal | null {
  if (error instanceof Unauthorized) return refusals.identityUnresolved(error.cause ?? error.message);
  if (!(error instanceof ProtocolError)) return null;
  const refusal =
    error.code === RPC.missingCapability
      ? refusals.notImplemented(error.message)
      : refusals.invalidArgument(error.message);
  return { ...refusal, gate: 'protocol' };
}
