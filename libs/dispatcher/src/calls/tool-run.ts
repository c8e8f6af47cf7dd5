import { isObservable, type Observable } from 'rxjs';
import {
  type Abortable,
  type Agent,
  askingCall,
  type AskingCall,
  type CallTrace,
  type DataUse,
  isAborted,
  LazyAbort,
  type LogEntry,
  type ProgressUpdate,
  readProgress,
  type Refusal,
  type RequestContext,
  type ToolTelemetry,
  whenAborted,
} from '#core';
import type { EmbeddingSpend } from '#audit';
import type {
  CallBudget,
  GovernedRecords,
  GovernedRecordsSource,
  GovernedSearch,
  GovernedSearchSource,
  GovernedWritesSource,
} from '#data';
import type { Policies } from '#policy';
import type {
  ToolCall,
  ToolDefinition,
  ToolHandler,
  ToolNeed,
  ToolOutcome,
  ToolRegistration,
  ToolSwitches,
} from '#tools';
import { type BudgetedCall, CallMeter, meters } from './data-budgets.js';

/** A value that is there already, or arrives later. A call waits only where something arrives later. */
export type Awaitable<T> = T | Promise<T>;

/** Refuses a call, or lets it pass with null. */
export interface Guard {
  /** Its name in traces and in docs/contributing/life-of-a-call.md. */
  readonly gate: string;
  check(run: ToolRun): Awaitable<Refusal | null>;
}

/** Runs around the rest of the pipeline: guards behind it, other interceptors and the handler. */
export interface Interceptor<Inner = ToolOutcome> {
  intercept(run: ToolRun, next: () => Awaitable<Inner>): Awaitable<ToolOutcome>;
}

/** Calls the rest of the pipeline, and continues at once where nothing waits. */
export function after<T, R>(
  next: () => Awaitable<T>,
  ended: (value: T) => Awaitable<R>,
  failed: (error: unknown) => Awaitable<R>,
): Awaitable<R> {
  let value;
  try {
    value = next();
  } catch (error) {
    return failed(error);
  }
  return value instanceof Promise ? value.then(ended, failed) : ended(value);
}

/** What the record of a run contains besides its outcome. */
export interface CallNotes {
  /** Every guard admitted the call. */
  readonly begun?: boolean;
  /** The thrown error. A refusal that was returned has none. */
  readonly error?: unknown;
  /** The operator's canary that was found in the result. */
  readonly phrase?: string | undefined;
  /** Who approved the call, if approval was required. */
  readonly approver?: string | undefined;
  /** The data use of the call. */
  readonly use?: Omit<DataUse, 'calls'> | undefined;
  /** The cost of embeddings so far. */
  readonly embedding?: EmbeddingSpend | undefined;
  /** The classes that the call reached from others. */
  readonly joined?: ReadonlySet<string> | undefined;
}

/** The source of a call's data access. */
export interface CallSources {
  readonly policies: Pick<Policies, 'of'>;
  readonly records: GovernedRecordsSource;
  readonly search: GovernedSearchSource;
  readonly writes: GovernedWritesSource;
}

/** One run of a tool in the pipeline: what guards and interceptors receive, and what its record is made from. */
export class ToolRun implements CallNotes {
  begun = false;
  error: unknown = undefined;
  phrase: string | undefined = undefined;
  approver: string | undefined;
  use: Omit<DataUse, 'calls'> | undefined = undefined;
  embedding: EmbeddingSpend | undefined = undefined;

  /** Remarks for the answer. */
  readonly notes = new Set<string>();

  /** Milliseconds of the monotonic clock. */
  readonly started = performance.now();
  /** Undefined when no tool has that name. The tool guard refuses it before anything else reads it. */
  readonly definition: ToolDefinition | undefined;
  readonly handler: ToolHandler;
  /** The data use so far. */
  readonly meter: CallMeter;
  /** The clock of the handler. Guards may wait longer. */
  readonly clock = new RunClock();

  private readonly ending = new LazyAbort();
  private ownCall: GovernedCall | null = null;

  /**
   * @param budgeted the budget that pays for the data use of the call; null where no budget applies
   * @param observed absent when telemetry is off
   */
  constructor(
    readonly name: string,
    readonly args: unknown,
    readonly context: RequestContext,
    entry: Pick<ToolRegistration, 'definition' | 'handler'> | undefined,
    readonly sources: CallSources,
    readonly budgeted: BudgetedCall | null,
    readonly observed: ToolTelemetry | undefined,
  ) {
    this.definition = entry?.definition;
    this.handler = entry?.handler ?? missingHandler;
    this.approver = context.approver;
    this.meter = budgeted ?? new CallMeter();
  }

  /** Seconds that the run may take. A task has a longer limit. */
  get seconds(): number {
    const { definition, context } = this;
    return context.background === 'running' ? (definition?.taskTimeout ?? 600) : (definition?.timeout ?? 30);
  }

  /** Aborts with the run. The run ends with its request, and also after its timeout. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  get joined(): ReadonlySet<string> {
    return this.meter.joined;
  }

  get trace(): CallTrace | undefined {
    return this.observed?.trace ?? this.context.trace;
  }

  /** The input of the handler. */
  get call(): GovernedCall {
    this.ownCall ??= new GovernedCall(this, this.ending);
    return this.ownCall;
  }

  /** The call with a separate data access, for a preview: a later decision checks permissions again. */
  anotherCall(): ToolCall {
    return new GovernedCall(this, this.ending);
  }

  /** Every guard admitted the call: its handler starts now. */
  begin(): void {
    this.begun = true;
    this.observed?.begins();
  }

  abort(reason: unknown): void {
    this.ending.abort(reason);
  }

  /** Whether the request of the run has ended. */
  get isCancelled(): boolean {
    return isAborted(this.context);
  }
}

/** Reached only if the tool guard admitted an unknown name, which is an internal error. */
function missingHandler(): never {
  throw new Error('a tool without a handler passed the tool guard');
}

/** Further remarks would not help. */
const MAX_NOTES = 3;

/** What a tool sees of its run: the caller, governed data, and the way to the client. */
export class GovernedCall implements ToolCall {
  readonly agent: Agent;
  readonly correlationId: string | undefined;
  readonly trace: RequestContext['trace'];
  readonly meter: RequestContext['meter'];
  readonly note: (text: string) => void;
  readonly telemetry: RequestContext['telemetry'];
  readonly clientRequests: RequestContext['clientRequests'];
  readonly log: RequestContext['log'];
  readonly endStream: RequestContext['endStream'];
  readonly tool: ToolDefinition;
  readonly records: GovernedRecords;
  readonly search: GovernedSearch;
  readonly switches: ToolSwitches;
  // Functions of the object itself: a tool may take them out of it.
  readonly progress: (update: ProgressUpdate) => void;
  readonly canAsk: AskingCall['canAsk'];
  readonly ask: AskingCall['ask'];
  readonly spend: (embedding: EmbeddingSpend) => void;
  readonly continueAsTask: () => void;

  constructor(
    run: ToolRun,
    private readonly ending: Abortable,
  ) {
    const { context, sources, observed } = run;
    const definition = run.definition as ToolDefinition;
    const budget: CallBudget = { tool: run.name, timeout: run.seconds };
    const asking = askingCall(context.clientRequests, (work) => run.clock.suspended(work));
    this.agent = context.agent;
    this.correlationId = context.correlationId;
    this.trace = run.trace;
    this.meter = meters(run.meter, observed?.meter);
    this.note = (text) => void (run.notes.size < MAX_NOTES && run.notes.add(text));
    this.telemetry = context.telemetry;
    this.clientRequests = context.clientRequests?.within();
    this.log = context.log && ((entry: LogEntry) => context.log?.(entry));
    this.endStream = context.endStream && (() => context.endStream?.());
    this.tool = definition;
    this.records = sources.records.for(this, budget);
    this.search = sources.search.for(this, budget);
    this.switches = sources.policies.of(context.agent).switches;
    this.progress = (update) => {
      const report = readProgress(update);
      // A report that cannot be sent does not discard the result.
      if (report) context.progress(report);
    };
    this.canAsk = asking.canAsk;
    this.ask = asking.ask;
    this.spend = (embedding) => (run.embedding = sumOf(run.embedding, embedding));
    this.continueAsTask = () => {
      if (definition?.task === 'on-demand' && context.background === 'offered') throw new ContinuesAsTask();
    };
    if (definition?.needs) Object.assign(this, writeAccess(sources.writes, definition.needs, this, budget));
  }

  get signal(): AbortSignal {
    return this.ending.signal;
  }

  get aborted(): boolean {
    return isAborted(this.ending);
  }

  onAbort(listener: () => void): () => void {
    return whenAborted(this.ending, listener);
  }
}

/** Only the access that the tool declares: a tool that reads gets no write access. */
function writeAccess(
  writes: GovernedWritesSource,
  needs: readonly ToolNeed[],
  context: RequestContext,
  budget: CallBudget,
): object {
  return {
    ...(needs.includes('rows') && { writes: writes.rows(context, budget) }),
    ...(needs.includes('classes') && { classes: writes.classes(context, budget) }),
    ...(needs.includes('methods') && { methods: writes.methods(context, budget) }),
  };
}

function sumOf(before: EmbeddingSpend | undefined, more: EmbeddingSpend): EmbeddingSpend {
  return { calls: (before?.calls ?? 0) + more.calls, tokens: (before?.tokens ?? 0) + more.tokens };
}

/** The timeout of a run. It pauses while the run waits for a person or another program. */
class RunClock {
  private remaining = 0;
  private since = 0;
  private waiting = 0;
  private timer: NodeJS.Timeout | undefined = undefined;
  private expire: (() => void) | undefined = undefined;

  /** @param milliseconds until `expired` is called, without the waiting time */
  start(milliseconds: number, expired: () => void): void {
    this.remaining = milliseconds;
    this.expire = expired;
    if (this.waiting === 0) this.run();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.expire = undefined;
  }

  /** Waits for work that is not part of the run. */
  async suspended<T>(work: () => Promise<T>): Promise<T> {
    if (this.waiting++ === 0) this.halt();
    try {
      return await work();
    } finally {
      if (--this.waiting === 0) this.run();
    }
  }

  private run(): void {
    const { expire } = this;
    if (!expire) return;
    this.since = performance.now();
    this.timer = setTimeout(expire, this.remaining);
  }

  private halt(): void {
    if (!this.expire) return;
    clearTimeout(this.timer);
    this.remaining = Math.max(0, this.remaining - (performance.now() - this.since));
  }
}

/**
 * Converts the return value of a tool into one value. The emissions of an Observable are its progress and its last one
 * is the result: a text is a progress message, a progress update is sent as it is, any other value counts as one step.
 * The source is unsubscribed when the call ends.
 */
export function resultOf(returned: unknown, call: ToolCall): unknown {
  return isObservable(returned) ? lastOf(returned, call) : returned;
}

function lastOf(source: Observable<unknown>, { progress, signal }: ToolCall): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let steps = 0;
    let held: { readonly value: unknown } | null = null;
    const running = source.subscribe({
      next: (value) => {
        if (held) progress(stepOf(held.value, (steps += 1)));
        held = { value };
      },
      error: (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))),
      complete: () => resolve(held?.value ?? null),
    });
    const stop = () => {
      running.unsubscribe();
      reject(new Error('the call is over'));
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    running.add(() => signal.removeEventListener('abort', stop));
  });
}

function stepOf(value: unknown, step: number): ProgressUpdate {
  if (typeof value === 'string') return { progress: step, message: value };
  const { progress } = (value ?? {}) as { progress?: unknown };
  return typeof progress === 'number' ? (value as ProgressUpdate) : { progress: step };
}

/** Ends a run that continues as a task. It is not a failure: the kernel converts it into the answer. */
export class ContinuesAsTask extends Error {
  override readonly name = 'ContinuesAsTask';
  /** Who approved the call, if approval was required: for the records of its later runs. */
  approver: string | undefined;

  constructor() {
    super('the call goes on as a task');
  }
}

/** Whether the call continues as a task before its handler runs. */
export function beginsTask({
  definition,
  context,
}: {
  readonly definition: Pick<ToolDefinition, 'task'> | undefined;
  readonly context: Pick<RequestContext, 'background'>;
}): boolean {
  const always = definition?.task === 'required' || definition?.task === 'optional';
  return always && context.background === 'offered';
}

/** Why a run ended that another worker continues: that worker records the outcome. */
export const RUN_HANDED_OVER = 'run_handed_over';
