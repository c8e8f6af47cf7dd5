import { type FactoryProvider, Inject, Injectable, type Provider } from '@nestjs/common';
import { type Agent, type Refusal, type RequestContext, tierCovers, type ToolTelemetry } from '#core';
import { GovernedRecordsSource, GovernedSearchSource, GovernedWritesSource } from '#data';
import { Policies } from '#policy';
import {
  CallableMethods,
  effectiveTier,
  type ToolDefinition,
  type ToolOutcome,
  type ToolRegistration,
  ToolRegistry,
  ToolRunner,
} from '#tools';
import { DataBudgets } from './data-budgets.js';
import {
  ApprovalGuard,
  ArgumentsGuard,
  AuditGuard,
  BudgetGuard,
  CancellationGuard,
  EnvironmentGuard,
  RateLimitGuard,
  TaskGuard,
  ToolGuard,
} from './guards.js';
import {
  AuditInterceptor,
  ChargeInterceptor,
  DeadlineInterceptor,
  OutcomeInterceptor,
  ResultInterceptor,
  RunningCallsInterceptor,
} from './interceptors.js';
import { AfterCallInterceptor, BeforeCallGuard } from './call-journal.js';
import { ToolListings } from './tool-listings.js';
import { type Awaitable, type CallSources, type Guard, type Interceptor, ToolRun } from './tool-run.js';

/**
 * The order of every tool call (docs/contributing/life-of-a-call.md): this list is what runs. An interceptor runs around
 * everything behind it, refusals of guards included. Enhancers that a tool declares run inside the handler, which comes last.
 */
export const TOOL_PIPELINE = [
  AuditInterceptor,
  ChargeInterceptor,
  OutcomeInterceptor,
  RateLimitGuard,
  AuditGuard,
  ToolGuard,
  EnvironmentGuard,
  BudgetGuard,
  ArgumentsGuard,
  ApprovalGuard,
  BeforeCallGuard,
  CancellationGuard,
  TaskGuard,
  RunningCallsInterceptor,
  AfterCallInterceptor,
  DeadlineInterceptor,
  ResultInterceptor,
] as const;

type Step = Guard | Interceptor<unknown>;

/** A step as its kind, so that no call has to look for it. */
type Placed =
  | { readonly guard: Guard; readonly interceptor: null }
  | { readonly guard: null; readonly interceptor: Interceptor<unknown> };

/** Runs a call through the list. It waits only where a step does. */
export class ToolPipeline {
  private readonly steps: readonly Placed[];

  /** @param steps in their order; the last interceptor makes the outcome from the result of the handler */
  constructor(steps: readonly Step[]) {
    this.steps = steps.map((step) =>
      'intercept' in step ? { guard: null, interceptor: step } : { guard: step, interceptor: null },
    );
  }

  /** @throws errors that the call must not answer (`failedRun`) */
  run(run: ToolRun): Awaitable<ToolOutcome> {
    return this.from(0, run) as Awaitable<ToolOutcome>;
  }

  private from(first: number, run: ToolRun): Awaitable<unknown> {
    const { steps } = this;
    for (let at = first; at < steps.length; at += 1) {
      const { guard, interceptor } = steps[at] as Placed;
      if (interceptor) return interceptor.intercept(run, () => this.from(at + 1, run));
      const refusal = guard.check(run);
      if (refusal instanceof Promise)
        return refusal.then((refused) => this.behind(guard, at + 1, run, refused));
      if (refusal) return { ok: false, refusal } satisfies ToolOutcome;
      run.trace?.passed(guard.gate);
    }
    return handle(run);
  }

  private behind(guard: Guard, next: number, run: ToolRun, refusal: Refusal | null): Awaitable<unknown> {
    if (refusal) return { ok: false, refusal } satisfies ToolOutcome;
    run.trace?.passed(guard.gate);
    return this.from(next, run);
  }
}

function handle(run: ToolRun): Awaitable<unknown> {
  const { observed } = run;
  const returned = observed ? observed.within(() => handled(run)) : handled(run);
  // A promise of another library is waited for like any other.
  return isThenable(returned) && !(returned instanceof Promise) ? Promise.resolve(returned) : returned;
}

const handled = ({ handler, args, call }: ToolRun): unknown => handler(args as Record<string, unknown>, call);

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
  );
}

const pipeline: FactoryProvider<ToolPipeline> = {
  provide: ToolPipeline,
  useFactory: (...steps: Step[]) => new ToolPipeline(steps),
  inject: [...TOOL_PIPELINE],
};

/** What a run needs of a tool. */
export type RunnableTool = Pick<ToolRegistration, 'definition' | 'handler'>;

/**
 * Runs tools through the pipeline and converts every outcome, including refusals and errors, into one value and one
 * audit record.
 */
@Injectable()
export class ParleyToolRunner extends ToolRunner {
  private readonly sources: CallSources;

  constructor(
    @Inject(Policies) policies: Pick<Policies, 'of'>,
    records: GovernedRecordsSource,
    search: GovernedSearchSource,
    writes: GovernedWritesSource,
    private readonly registry: ToolRegistry,
    private readonly pipeline: ToolPipeline,
    private readonly listings: ToolListings,
    private readonly budgets: DataBudgets,
    private readonly methods: CallableMethods,
  ) {
    super();
    this.sources = { policies, records, search, writes };
  }

  list({ agent }: Pick<RequestContext, 'agent'>): readonly ToolDefinition[] {
    return this.listings.of(agent);
  }

  override listed({ agent }: Pick<RequestContext, 'agent'>): Awaitable<readonly ToolDefinition[]> {
    return this.listings.listed(agent);
  }

  has(name: string): boolean {
    return this.registry.get(name) !== undefined;
  }

  override permits({ agent }: { readonly agent: Agent }, name: string, args: unknown): boolean {
    const tool = this.listings.of(agent).find((listed) => listed.name === name);
    return tool !== undefined && tierCovers(agent.permissions, effectiveTier(tool, args, this.methods));
  }

  run(name: string, args: unknown, context: RequestContext): Promise<ToolOutcome> {
    return this.runEntry(name, this.registry.get(name), args, context);
  }

  /** Runs code that no listing shows, such as a route of an application, as a tool with this definition runs. */
  runUnlisted(entry: RunnableTool, args: unknown, context: RequestContext): Promise<ToolOutcome> {
    return this.runEntry(entry.definition.name, entry, args, context);
  }

  private async runEntry(
    name: string,
    entry: RunnableTool | undefined,
    args: unknown,
    context: RequestContext,
  ): Promise<ToolOutcome> {
    const observed = context.telemetry?.tool(name);
    if (!observed) return this.outcome(name, entry, args, context, undefined);
    try {
      return await this.outcome(name, entry, args, context, observed);
    } finally {
      // A run without a record has ended as well.
      observed.ends();
    }
  }

  private outcome(
    name: string,
    entry: RunnableTool | undefined,
    args: unknown,
    context: RequestContext,
    observed: ToolTelemetry | undefined,
  ): Awaitable<ToolOutcome> {
    const { sources, budgets } = this;
    const budgeted = budgets.open(context.agent);
    return this.pipeline.run(new ToolRun(name, args, context, entry, sources, budgeted, observed));
  }
}

/** Every guard and interceptor, and the pipeline that runs them in this order. */
export const PIPELINE_PROVIDERS: readonly Provider[] = [ToolListings, ...TOOL_PIPELINE, pipeline];
