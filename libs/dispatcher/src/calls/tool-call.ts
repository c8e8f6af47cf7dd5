import type { ExecutionContext, Type } from '@nestjs/common';
import {
  type Agent,
  createAskingCall,
  type AskingCall,
  type DataUse,
  LazyAbort,
  McpRequest,
  type RequestOptions,
  type ToolTelemetry,
  type CallApproval,
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
import {
  mayChangeData,
  type RegisteredTool,
  type ToolCall,
  type ToolDefinition,
  type ToolHandler,
  type ToolNeed,
  type ToolSwitches,
} from '#tools';
import { type BudgetedCall, CallClock, CallMeter, meters } from './call-limits.js';

/** A value that is there already, or arrives later. A call waits only where something arrives later. */
export type Awaitable<T> = T | Promise<T>;

export const TOOL_CONTEXT_TYPE = 'mcp';

/** A tool has no request: what the agent sent must not be read as one. */
export const NO_OTHER_TRANSPORT = {
  switchToHttp: (): never => throwNoTransport('HTTP request'),
  switchToRpc: (): never => throwNoTransport('message of a microservice'),
  switchToWs: (): never => throwNoTransport('WebSocket'),
};

function throwNoTransport(what: string): never {
  throw new TypeError(
    `the context of a tool has no ${what}: ask context.getType() first, and read a tool with ParleyExecutionContext`,
  );
}

/** What the record of a call contains besides its outcome. */
export interface CallNotes {
  /** Every guard admitted the call. */
  readonly begun?: boolean;
  /** A prompt or a resource was admitted to rows. It calls no tool. */
  readonly reads?: boolean;
  /** The thrown error; `Refused` for a refusal. */
  readonly error?: unknown;
  /** The operator's canary that was found in the result. */
  readonly phrase?: string | undefined;
  /** The approval of the call, if it was required. */
  readonly approval?: CallApproval | undefined;
  readonly use?: Omit<DataUse, 'calls'> | undefined;
  /** The cost of embeddings so far. */
  readonly embedding?: EmbeddingSpend | undefined;
  readonly changeSet?: string | undefined;
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
 * One call of a tool: the request that it came in as its handler receives it, the execution context of its guards and interceptors, and
 * what its record is made from. A handler sees the part that `ToolCall` declares.
 */
export class ParleyToolCall extends McpRequest implements ToolCall, ExecutionContext, CallNotes {
  begun = false;
  error: unknown = undefined;
  phrase: string | undefined = undefined;
  override approval: CallApproval | undefined;
  use: Omit<DataUse, 'calls'> | undefined = undefined;
  embedding: EmbeddingSpend | undefined = undefined;
  changeSet: string | undefined = undefined;

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
  readonly budgeted: BudgetedCall | null;
  readonly observed: ToolTelemetry | undefined;
  /** The data use so far. */
  readonly ownMeter: CallMeter;
  readonly joined: ReadonlySet<string>;
  readonly handler: ToolHandler;
  /** The tool as it was registered when the call began. */
  readonly registered: CalledTool | undefined;

  /** For the calls within this one. */
  override readonly beforeChange = async (): Promise<void> => {
    await this.request.beforeChange?.();
    this.callsWriter = true;
  };
  private callsWriter = false;

  private readonly ending = new LazyAbort();
  // A handler must not reach the sources: they open the data of any agent.
  readonly #sources: CallSources;
  #access: OpenAccess = {};
  #policy: Policy | undefined = undefined;

  constructor(
    readonly request: McpRequest,
    { name, args, tool, sources, budgeted = null, observed }: CallParts,
  ) {
    const ownMeter = budgeted ?? new CallMeter();
    super(request.agent, request.transport, {
      clientRequests: request.clientRequests?.within(),
      trace: observed?.trace ?? request.trace,
      meter: meters(ownMeter, observed?.meter),
    });
    this.name = name;
    this.args = args;
    this.definition = tool?.definition;
    this.handler = tool?.handler ?? throwMissingHandler;
    this.registered = tool;
    this.#sources = sources;
    this.approval = request.approval;
    this.budgeted = budgeted;
    this.observed = observed;
    this.ownMeter = ownMeter;
    this.joined = ownMeter.joined;
  }

  /** A request inside this call: it ends with the call. */
  override with({ agent = this.agent, ...changes }: RequestOptions & { readonly agent?: Agent }): McpRequest {
    return new McpRequest(agent, this, { ...this.options, beforeChange: this.beforeChange, ...changes });
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

  // A tool may take these functions out of its call.

  override get note(): (text: string) => void {
    return (text) => void (this.notes.size < MAX_NOTES && this.notes.add(text));
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

  get belongsTo(): (changeSet: string) => void {
    return (changeSet) => void (this.changeSet = changeSet);
  }

  get continueAsTask(): () => void {
    return () => {
      if (this.definition?.task === 'on-demand' && this.request.background === 'offered')
        throw new ContinuesAsTask();
    };
  }

  /** Aborts with the call. The call ends with its request, and also after its timeout. */
  override get signal(): AbortSignal {
    return this.ending.signal;
  }

  override get aborted(): boolean {
    return this.ending.aborted;
  }

  override onAbort(listener: () => void): () => void {
    return this.ending.onAbort(listener);
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
    return NO_OTHER_TRANSPORT.switchToHttp();
  }

  switchToRpc(): never {
    return NO_OTHER_TRANSPORT.switchToRpc();
  }

  switchToWs(): never {
    return NO_OTHER_TRANSPORT.switchToWs();
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

  /** Only a tool that declares writes, or that calls such a tool, can change data. A tool of a higher tier may write by other means. */
  get mayHaveWritten(): boolean {
    return this.callsWriter || !this.definition || mayChangeData(this.definition);
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

/** Ends a run that continues as a task. It is not a failure: the kernel converts it into the answer. */
export class ContinuesAsTask extends Error {
  override readonly name = 'ContinuesAsTask';
  /** The approval of the call, if it was required: for the records of its later runs. */
  approval: CallApproval | undefined;

  constructor() {
    super('the call goes on as a task');
  }
}
