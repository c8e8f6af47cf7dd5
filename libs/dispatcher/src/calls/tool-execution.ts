import type { ExecutionContext, CanActivate } from '@nestjs/common';
import {
  type Agent,
  askingCall,
  type RequestContext,
  readProgress,
  type ToolTelemetry,
  type DataUse,
} from '#core';
import type { EmbeddingSpend } from '#audit';
import type { CallBudget, GovernedRecordsSource, GovernedSearchSource, GovernedWritesSource } from '#data';
import type { Policies } from '#policy';
import type { ToolCall, ToolDefinition, ToolNeed, ToolOutcome } from '#tools';
import { type BudgetedCall, type CallMeter, meters } from './data-budgets.js';
import { ContinuesAsTask } from '../tasks/task-store.js';

/** Values that a run collects besides its outcome. */
export interface CallNotes {
  /** Every gate of the pipeline admitted the call. */
  begun?: boolean;
  /** The thrown error. */
  error?: unknown;
  /** The operator's canary that was found in the result. */
  phrase?: string;
  /** Who approved the call, if approval was required. */
  approver?: string;
  /** The data use of the call. */
  use?: Omit<DataUse, 'calls'>;
  /** The cost of embeddings so far. */
  embedding?: EmbeddingSpend;
}

/** One run in the pipeline: the input of guards and interceptors. */
export interface ToolExecution {
  readonly name: string;
  /** Undefined when no tool has that name. The tool gate refuses it before any other gate reads it. */
  readonly definition: ToolDefinition | undefined;
  readonly args: unknown;
  readonly context: RequestContext;
  /** The budget that pays for the data use of the call; null where no budget applies. */
  readonly budgeted: BudgetedCall | null;
  /** The data use so far. */
  readonly meter: CallMeter;
  readonly notes: CallNotes;
  /** The clock of the handler. Gates may wait longer. */
  readonly clock: RunClock;
  /** Absent when telemetry is off. */
  readonly observed?: ToolTelemetry | undefined;
  /** The call with a separate data access, for a preview: a later decision checks permissions again. */
  anotherCall(): ToolCall;
  /** Aborts the run's own signal after a timeout. */
  abort(reason: unknown): void;
  /** Notes that every gate admitted the call: it is a run from here on. */
  begin(): void;
  /** Notes the approver for the audit record. */
  approved(approver: string): void;
  /** Notes for the audit record that the result contains one of the operator's canaries. */
  flag(phrase: string): void;
}

/** A guard of every call, with its name in traces. */
export interface Gate extends CanActivate {
  readonly gate: string;
}

/** A step around every guard, interceptor and the handler of a call. It also receives refusals by guards. */
export interface CallStep {
  around(execution: ToolExecution, next: () => Promise<ToolOutcome>): Promise<ToolOutcome>;
}

/** Seconds that a run may take. A task has a longer limit. */
export function secondsFor(
  definition: ToolDefinition | undefined,
  { background }: Pick<RequestContext, 'background'>,
): number {
  return background === 'running' ? (definition?.taskTimeout ?? 600) : (definition?.timeout ?? 30);
}

/** Argument positions of an execution context of type `mcp`: the two arguments of the handler come first. */
export type ToolContextArguments = readonly [args: unknown, call: ToolCall, execution: ToolExecution];

export const TOOL_CONTEXT_TYPE = 'mcp';

export function toolExecutionOf(context: ExecutionContext): ToolExecution {
  return context.getArgByIndex<ToolExecution>(2);
}

/** The timeout of a run. It pauses while the run waits for a person or another program. */
export class RunClock {
  private remaining = 0;
  private since = 0;
  private waiting = 0;
  private timer: NodeJS.Timeout | undefined;
  private expire: (() => void) | undefined;

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

/** The access of a guard, an interceptor, a filter or a decorator of a tool to its call. */
export class ParleyExecutionContext {
  private constructor(private readonly host: ExecutionContext) {}

  /**
   * Returns the call behind the context of a guard, interceptor or filter of a tool. @throws TypeError in a context
   * that is not of a tool: check `isTool` first where both occur
   */
  static create(context: ExecutionContext): ParleyExecutionContext {
    if (!ParleyExecutionContext.isTool(context))
      throw new TypeError(`the context is of type '${context.getType()}', not of a tool`);
    return new ParleyExecutionContext(context);
  }

  /** Whether a context belongs to a tool. */
  static isTool(context: ExecutionContext): boolean {
    return context.getType<string>() === TOOL_CONTEXT_TYPE;
  }

  /** The arguments after validation by the tool's schema. */
  getArguments<T = Readonly<Record<string, unknown>>>(): T {
    return this.host.getArgByIndex<T>(0);
  }

  /** The call, with its governed data access. */
  getCall(): ToolCall {
    return this.host.getArgByIndex<ToolCall>(1);
  }

  /** The calling agent. */
  getAgent(): Agent {
    return this.getCall().agent;
  }

  /** The tool that is called. */
  getTool(): ToolDefinition {
    return this.getCall().tool;
  }
}

/** The source of a call's data access. */
export interface CallSources {
  readonly policies: Pick<Policies, 'of'>;
  readonly records: GovernedRecordsSource;
  readonly search: GovernedSearchSource;
  readonly writes: GovernedWritesSource;
}

interface OpenedRun {
  readonly definition: ToolDefinition | undefined;
  readonly name: string;
  /** The context of the call. */
  readonly context: RequestContext;
  /** The context of the run. */
  readonly ownContext: RequestContext;
  readonly clock: RunClock;
  readonly notes: CallNotes;
}

/** Opens calls of one run, any number of times: the handler's input, and the only access to data. */
export function callsOf(
  { policies, records, search, writes }: CallSources,
  { definition, name, context, ownContext, clock, notes }: OpenedRun,
): () => ToolCall {
  const budget: CallBudget = { tool: name, timeout: secondsFor(definition, context) };
  const asking = askingCall(context.asks, (work) => clock.suspended(work));
  return () =>
    ({
      ...ownContext,
      ...asking,
      continueAsTask: () => {
        if (definition?.task === 'on-demand' && context.background === 'offered') throw new ContinuesAsTask();
      },
      tool: definition,
      records: records.for(ownContext, budget),
      search: search.for(ownContext, budget),
      switches: policies.of(context.agent).switches,
      spend: (embedding: EmbeddingSpend) => (notes.embedding = sumOf(notes.embedding, embedding)),
      ...writeAccess(writes, definition?.needs ?? [], ownContext, budget),
    }) as ToolCall;
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

interface RunParts {
  readonly signal: AbortSignal;
  readonly observed: ToolTelemetry | undefined;
  readonly meter: CallMeter;
}

/** The context of a run: the context of its call with a separate signal, meters and client requests. */
export function contextOfRun(context: RequestContext, { signal, observed, meter }: RunParts): RequestContext {
  return {
    agent: context.agent,
    signal,
    ...(context.correlationId !== undefined && { correlationId: context.correlationId }),
    ...measuredBy(observed, context, meter),
    ...(context.asks && { asks: context.asks.within() }),
    progress: (update) => {
      const report = readProgress(update);
      // A report that cannot be sent does not discard the result.
      if (report) context.progress(report);
    },
    ...(context.log && { log: (entry) => context.log?.(entry) }),
    ...(context.endStream && { endStream: () => context.endStream?.() }),
  };
}

/** The meters that the data access of a run reports to. */
function measuredBy(
  observed: ToolTelemetry | undefined,
  { trace: rehearsed, telemetry }: RequestContext,
  own: CallMeter,
): Pick<RequestContext, 'trace' | 'meter' | 'telemetry'> {
  const trace = observed?.trace ?? rehearsed;
  const meter = meters(own, observed?.meter);
  return { ...(trace && { trace }), ...(meter && { meter }), ...(telemetry && { telemetry }) };
}

function sumOf(before: EmbeddingSpend | undefined, more: EmbeddingSpend): EmbeddingSpend {
  return { calls: (before?.calls ?? 0) + more.calls, tokens: (before?.tokens ?? 0) + more.tokens };
}
