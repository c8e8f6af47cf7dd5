import type { ExecutionContext, Type } from '@nestjs/common';
import {
  createAskingCall,
  type AskingCall,
  type CallTrace,
  type DataUse,
  isAborted,
  LazyAbort,
  type ProgressUpdate,
  readProgress,
  type RequestContext,
  type ToolTelemetry,
  whenAborted,
} from '#core';
import type { EmbeddingSpend } from '#audit';
import type {
  CallBudget,
  GovernedClassWrites,
  GovernedMethods,
  GovernedRecords,
  GovernedRecordsSource,
  GovernedSearch,
  GovernedSearchSource,
  GovernedWrites,
  GovernedWritesSource,
} from '#data';
import type { Policies, Policy } from '#policy';
import type { RegisteredTool, ToolCall, ToolDefinition, ToolHandler, ToolNeed, ToolSwitches } from '#tools';
import { type BudgetedCall, CallMeter, meters } from './data-budgets.js';

/** A value that is there already, or arrives later. A call waits only where something arrives later. */
export type Awaitable<T> = T | Promise<T>;

/** The type of the execution context of a tool. */
export const TOOL_CONTEXT_TYPE = 'mcp';

/** What the record of a call contains besides its outcome. */
export interface CallNotes {
  /** Every guard admitted the call. */
  readonly begun?: boolean;
  /** The thrown error; `Refused` for a refusal. */
  readonly error?: unknown;
  /** The operator's canary that was found in the result. */
  readonly phrase?: string | undefined;
  /** Who approved the call, if approval was required. */
  readonly approvedBy?: string | undefined;
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

/** What a call needs of its tool. */
type CalledTool = Pick<RegisteredTool, 'definition' | 'handler' | 'declared' | 'refuseUnknown'>;

/** What a call has besides its request. */
export interface CallParts {
  readonly name: string;
  readonly args: unknown;
  /** Absent when no tool has that name. The tool guard refuses it before anything else reads it. */
  readonly tool?: CalledTool | undefined;
  readonly sources: CallSources;
  /** The budget that pays for the data use of the call. Default: none applies. */
  readonly budgeted?: BudgetedCall | null;
  /** Absent when telemetry is off. */
  readonly observed?: ToolTelemetry | undefined;
}

/** Further remarks would not help. */
const MAX_NOTES = 3;

/** What `getClass` answers for a tool that no class declares. */
class UndeclaredTool {}

/** The data access of a call, each part opened when it is first read. */
interface OpenAccess {
  records?: GovernedRecords;
  search?: GovernedSearch;
  writes?: GovernedWrites;
  classes?: GovernedClassWrites;
  methods?: GovernedMethods;
}

/**
 * One call of a tool: the execution context of its guards and interceptors, what its handler receives, and what its
 * record is made from. A handler sees the part that `ToolCall` declares.
 */
export class ParleyToolCall implements ToolCall, ExecutionContext, CallNotes {
  begun = false;
  error: unknown = undefined;
  phrase: string | undefined = undefined;
  approvedBy: string | undefined;
  use: Omit<DataUse, 'calls'> | undefined = undefined;
  embedding: EmbeddingSpend | undefined = undefined;

  /** Remarks for the answer. */
  readonly notes = new Set<string>();
  /** Milliseconds of the monotonic clock. */
  readonly started = performance.now();
  /** The clock of the handler. Guards may wait longer. */
  readonly clock = new CallClock();
  readonly name: string;
  readonly args: unknown;
  /** Undefined when no tool has that name. */
  readonly definition: ToolDefinition | undefined;
  readonly agent: RequestContext['agent'];
  readonly budgeted: BudgetedCall | null;
  readonly observed: ToolTelemetry | undefined;
  /** The data use so far. */
  readonly ownMeter: CallMeter;
  readonly handler: ToolHandler;
  /** The tool as it was registered when the call began. */
  readonly registered: CalledTool | undefined;

  private readonly ending = new LazyAbort();
  // A handler must not reach the sources: they open the data of any agent.
  readonly #sources: CallSources;
  #access: OpenAccess = {};
  #policy: Policy | undefined = undefined;

  constructor(
    readonly request: RequestContext,
    { name, args, tool, sources, budgeted = null, observed }: CallParts,
  ) {
    this.name = name;
    this.args = args;
    this.definition = tool?.definition;
    this.handler = tool?.handler ?? throwMissingHandler;
    this.registered = tool;
    this.#sources = sources;
    this.agent = request.agent;
    this.approvedBy = request.approver;
    this.budgeted = budgeted;
    this.observed = observed;
    this.ownMeter = budgeted ?? new CallMeter();
  }

  // What a tool sees.

  get tool(): ToolDefinition {
    return this.definition as ToolDefinition;
  }

  get records(): GovernedRecords {
    return (this.#access.records ??= this.#sources.records.for(this, this.budget));
  }

  get search(): GovernedSearch {
    return (this.#access.search ??= this.#sources.search.for(this, this.budget));
  }

  /** Undefined, like the other accesses that write, for a tool that does not declare the need. */
  get writes(): GovernedWrites | undefined {
    if (!this.needs('rows')) return undefined;
    return (this.#access.writes ??= this.#sources.writes.rows(this, this.budget));
  }

  get classes(): GovernedClassWrites | undefined {
    if (!this.needs('classes')) return undefined;
    return (this.#access.classes ??= this.#sources.writes.classes(this, this.budget));
  }

  get methods(): GovernedMethods | undefined {
    if (!this.needs('methods')) return undefined;
    return (this.#access.methods ??= this.#sources.writes.methods(this, this.budget));
  }

  get switches(): ToolSwitches {
    return this.policy.switches;
  }

  get correlationId(): string | undefined {
    return this.request.correlationId;
  }

  get telemetry(): RequestContext['telemetry'] {
    return this.request.telemetry;
  }

  get trace(): CallTrace | undefined {
    return this.observed?.trace ?? this.request.trace;
  }

  get meter(): RequestContext['meter'] {
    return meters(this.ownMeter, this.observed?.meter);
  }

  get clientRequests(): RequestContext['clientRequests'] {
    return this.request.clientRequests?.within();
  }

  // A tool may take these functions out of its call.

  get log(): RequestContext['log'] {
    const { request } = this;
    return request.log && ((entry) => request.log?.(entry));
  }

  get endStream(): RequestContext['endStream'] {
    const { request } = this;
    return request.endStream && (() => request.endStream?.());
  }

  get note(): (text: string) => void {
    return (text) => void (this.notes.size < MAX_NOTES && this.notes.add(text));
  }

  get progress(): (update: ProgressUpdate) => void {
    return (update) => {
      const report = readProgress(update);
      // A report that cannot be sent does not discard the result.
      if (report) this.request.progress(report);
    };
  }

  get canAsk(): AskingCall['canAsk'] {
    return this.asking.canAsk;
  }

  get ask(): AskingCall['ask'] {
    return this.asking.ask;
  }

  get spend(): (embedding: EmbeddingSpend) => void {
    return ({ calls, tokens }) => {
      const before = this.embedding;
      this.embedding = { calls: (before?.calls ?? 0) + calls, tokens: (before?.tokens ?? 0) + tokens };
    };
  }

  get continueAsTask(): () => void {
    return () => {
      if (this.definition?.task === 'on-demand' && this.request.background === 'offered')
        throw new ContinuesAsTask();
    };
  }

  /** Aborts with the call. The call ends with its request, and also after its timeout. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  get aborted(): boolean {
    return isAborted(this.ending);
  }

  onAbort(listener: () => void): () => void {
    return whenAborted(this.ending, listener);
  }

  // What Nest's guards and interceptors see.

  getType<Context extends string = typeof TOOL_CONTEXT_TYPE>(): Context {
    return TOOL_CONTEXT_TYPE as Context;
  }

  getClass<T = unknown>(): Type<T> {
    return (this.registered?.declared?.type ?? UndeclaredTool) as Type<T>;
  }

  getHandler(): ToolHandler {
    return (this.registered?.declared?.method as ToolHandler | undefined) ?? this.handler;
  }

  getArgs<T extends unknown[] = unknown[]>(): T {
    return [this.args, this] as unknown[] as T;
  }

  getArgByIndex<T = unknown>(index: number): T {
    return this.getArgs()[index] as T;
  }

  switchToHttp(): never {
    throw new TypeError('the context of a tool has no HTTP request');
  }

  switchToRpc(): never {
    throw new TypeError('the context of a tool has no message of a microservice');
  }

  switchToWs(): never {
    throw new TypeError('the context of a tool has no WebSocket');
  }

  // What the steps of the list read and do.

  /** The policy of the configuration version that the agent belongs to. */
  get policy(): Policy {
    return (this.#policy ??= this.#sources.policies.of(this.agent));
  }

  /** Seconds that the call may take. A task has a longer limit. */
  get seconds(): number {
    const { definition, request } = this;
    return request.background === 'running' ? (definition?.taskTimeout ?? 600) : (definition?.timeout ?? 30);
  }

  get joined(): ReadonlySet<string> {
    return this.ownMeter.joined;
  }

  /** Whether the request of the call has ended. */
  get isCancelled(): boolean {
    return isAborted(this.request);
  }

  /** Whether the call continues as a task before its handler runs. */
  get beginsTask(): boolean {
    const task = this.definition?.task;
    return (task === 'required' || task === 'optional') && this.request.background === 'offered';
  }

  /** Every guard admitted the call: its handler starts now. */
  begin(): void {
    this.begun = true;
    this.observed?.begins();
  }

  abort(reason: unknown): void {
    this.ending.abort(reason);
  }

  /** The next use of the data opens it again, so that a later decision checks permissions again. */
  closeAccess(): void {
    this.#access = {};
  }

  private get budget(): CallBudget {
    return { tool: this.name, timeout: this.seconds };
  }

  private get asking(): AskingCall {
    return createAskingCall(this.request.clientRequests, (work) => this.clock.suspended(work));
  }

  private needs(need: ToolNeed): boolean {
    return this.definition?.needs?.includes(need) ?? false;
  }
}

/** Reached only if the tool guard admitted an unknown name, which is an internal error. */
function throwMissingHandler(): never {
  throw new Error('a tool without a handler passed the tool guard');
}

/** The timeout of a call. It pauses while the call waits for a person or another program. */
class CallClock {
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

/** Ends a run that continues as a task. It is not a failure: the kernel converts it into the answer. */
export class ContinuesAsTask extends Error {
  override readonly name = 'ContinuesAsTask';
  /** Who approved the call, if approval was required: for the records of its later runs. */
  approvedBy: string | undefined;

  constructor() {
    super('the call goes on as a task');
  }
}

/** Why a run ended that another worker continues: that worker records the outcome. */
export const RUN_HANDED_OVER = 'run_handed_over';
