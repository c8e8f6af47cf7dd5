import type { ExecutionContext, CanActivate } from '@nestjs/common';
import {
  type Agent,
  askingCall,
  type CallContext,
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

/** What a run noted on its way, besides its outcome. */
export interface CallNotes {
  /** Every gate of the pipeline let it pass. */
  begun?: boolean;
  /** What was thrown. */
  error?: unknown;
  /** The operator's phrase that was found in the result. */
  phrase?: string;
  /** Who decided upon it, when somebody had to. */
  approver?: string;
  /** What it used of the data. */
  use?: Omit<DataUse, 'calls'>;
  /** What embeddings cost, so far. */
  embedding?: EmbeddingSpend;
}

/** One run on its way through the pipeline: what guards and interceptors decide on. */
export interface ToolExecution {
  readonly name: string;
  /** Undefined when no tool has that name; the tool gate refuses before anything else asks. */
  readonly definition: ToolDefinition | undefined;
  readonly args: unknown;
  readonly context: CallContext;
  /** Who pays for the data that the call uses; null where nothing limits it. */
  readonly budgeted: BudgetedCall | null;
  /** What it has used of the data so far. */
  readonly meter: CallMeter;
  readonly notes: CallNotes;
  /** Of the handler: gates may wait longer. */
  readonly clock: RunClock;
  /** Absent where nothing is measured. */
  readonly observed?: ToolTelemetry | undefined;
  /** The call with doors of its own, for a preview: what is decided later asks about rights anew. */
  anotherCall(): ToolCall;
  /** Ends the run's own signal: its time is up. */
  abort(reason: unknown): void;
  /** Notes that every gate let it pass: from here on it is a run. */
  begin(): void;
  /** Notes for the audit record who decided upon it. */
  approved(approver: string): void;
  /** Notes for the audit record that the result holds one of the operator's canaries. */
  flag(phrase: string): void;
}

/** A guard of every call, by the name that traces know it by. */
export interface Gate extends CanActivate {
  readonly gate: string;
}

/** A step around every guard, interceptor and the handler of a call. It sees what a guard refuses, too. */
export interface CallStep {
  around(execution: ToolExecution, next: () => Promise<ToolOutcome>): Promise<ToolOutcome>;
}

/** Seconds that a run may take: a task has more of them. */
export function secondsFor(
  definition: ToolDefinition | undefined,
  { background }: Pick<CallContext, 'background'>,
): number {
  return background === 'running' ? (definition?.taskTimeout ?? 600) : (definition?.timeout ?? 30);
}

/** Positions of the arguments of an execution context of type `mcp`: a handler's own two come first. */
export type ToolContextArguments = readonly [args: unknown, call: ToolCall, execution: ToolExecution];

export const TOOL_CONTEXT_TYPE = 'mcp';

export function toolExecutionOf(context: ExecutionContext): ToolExecution {
  return context.getArgByIndex<ToolExecution>(2);
}

/** The time a run may take. It stands still while the run waits for a person or another program to answer. */
export class RunClock {
  private remaining = 0;
  private since = 0;
  private waiting = 0;
  private timer: NodeJS.Timeout | undefined;
  private expire: (() => void) | undefined;

  /** @param milliseconds until `expired` is called, waiting apart */
  start(milliseconds: number, expired: () => void): void {
    this.remaining = milliseconds;
    this.expire = expired;
    if (this.waiting === 0) this.run();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.expire = undefined;
  }

  /** Waits for something that is not the run's own work. */
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

/** What a guard, an interceptor, a filter or a decorator of a tool may ask of the call that it stands in. */
export class ParleyExecutionContext {
  private constructor(private readonly host: ExecutionContext) {}

  /** The call behind what a guard, interceptor or filter of a tool was given. @throws TypeError in a context that is not of a tool: ask `isTool` first where both pass */
  static create(context: ExecutionContext): ParleyExecutionContext {
    if (!ParleyExecutionContext.isTool(context))
      throw new TypeError(`the context is of type '${context.getType()}', not of a tool`);
    return new ParleyExecutionContext(context);
  }

  /** Whether a context is one of a tool. */
  static isTool(context: ExecutionContext): boolean {
    return context.getType<string>() === TOOL_CONTEXT_TYPE;
  }

  /** As the tool's schema read them. */
  getArguments<T = Readonly<Record<string, unknown>>>(): T {
    return this.host.getArgByIndex<T>(0);
  }

  /** The call, with its governed doors. */
  getCall(): ToolCall {
    return this.host.getArgByIndex<ToolCall>(1);
  }

  /** Who is calling. */
  getAgent(): Agent {
    return this.getCall().agent;
  }

  /** What is called. */
  getTool(): ToolDefinition {
    return this.getCall().tool;
  }
}

/** Where the doors of a call come from. */
export interface CallSources {
  readonly policies: Pick<Policies, 'of'>;
  readonly records: GovernedRecordsSource;
  readonly search: GovernedSearchSource;
  readonly writes: GovernedWritesSource;
}

interface OpenedRun {
  readonly definition: ToolDefinition | undefined;
  readonly name: string;
  /** As the call came. */
  readonly context: CallContext;
  /** As the run goes on. */
  readonly ownContext: CallContext;
  readonly clock: RunClock;
  readonly notes: CallNotes;
}

/** Opens calls of one run, as often as it wants one: what a handler is given, and nothing else that leads to data. */
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
      ...writingDoors(writes, definition?.needs ?? [], ownContext, budget),
    }) as ToolCall;
}

/** Only what the tool said it needs: one that reads holds nothing that writes. */
function writingDoors(
  writes: GovernedWritesSource,
  needs: readonly ToolNeed[],
  context: CallContext,
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

/** The context of a run: that of its call, with a signal, measures and questions of its own. */
export function contextOfRun(context: CallContext, { signal, observed, meter }: RunParts): CallContext {
  return {
    agent: context.agent,
    signal,
    ...(context.correlationId !== undefined && { correlationId: context.correlationId }),
    ...measuredBy(observed, context, meter),
    ...(context.asks && { asks: context.asks.within() }),
    progress: (update) => {
      const report = readProgress(update);
      // A report that cannot be told is no reason to lose the result.
      if (report) context.progress(report);
    },
    ...(context.log && { log: (entry) => context.log?.(entry) }),
    ...(context.endStream && { endStream: () => context.endStream?.() }),
  };
}

/** What the run's own doors tell of themselves, and to whom. */
function measuredBy(
  observed: ToolTelemetry | undefined,
  { trace: rehearsed, telemetry }: CallContext,
  own: CallMeter,
): Pick<CallContext, 'trace' | 'meter' | 'telemetry'> {
  const trace = observed?.trace ?? rehearsed;
  const meter = meters(own, observed?.meter);
  return { ...(trace && { trace }), ...(meter && { meter }), ...(telemetry && { telemetry }) };
}

function sumOf(before: EmbeddingSpend | undefined, more: EmbeddingSpend): EmbeddingSpend {
  return { calls: (before?.calls ?? 0) + more.calls, tokens: (before?.tokens ?? 0) + more.tokens };
}
