import { Injectable } from '@nestjs/common';
import { type Agent, type AgentShape, type RequestContext, tierCovers, type ToolTelemetry } from '#core';
import { GovernedRecordsSource, GovernedSearchSource, GovernedWritesSource } from '#data';
import { type EnvironmentGates, mayUse, Policies } from '#policy';
import {
  CallableMethods,
  effectiveTier,
  type ToolDefinition,
  ToolEnvironment,
  type ToolOutcome,
  ToolRegistry,
  ToolRunner,
} from '#tools';
import { CallMeter, DataBudgets } from './data-budgets.js';
import {
  type CallNotes,
  callsOf,
  type CallSources,
  contextOfRun,
  RunClock,
  type ToolExecution,
} from './tool-execution.js';
import { runThrough, ToolPipeline } from './tool-pipeline.js';

interface RunnerParts extends CallSources {
  readonly registry: ToolRegistry;
  readonly pipeline: ToolPipeline;
  readonly gates: EnvironmentGates;
  readonly budgets: DataBudgets;
  readonly methods: CallableMethods;
}

interface Listing {
  readonly version: number;
  readonly tools: readonly ToolDefinition[];
}

/**
 * Runs tools through the pipeline and converts every outcome, including refusals and errors, into one value and one
 * audit record.
 */
@Injectable()
export class ParleyToolRunner extends ToolRunner {
  /** The listed tools depend only on the agent's definition. The same array is returned until a change. */
  private readonly listings = new WeakMap<AgentShape, Listing>();

  private readonly dependencies: RunnerParts;

  constructor(
    policies: Policies,
    records: GovernedRecordsSource,
    search: GovernedSearchSource,
    writes: GovernedWritesSource,
    registry: ToolRegistry,
    pipeline: ToolPipeline,
    gates: ToolEnvironment,
    budgets: DataBudgets,
    methods: CallableMethods,
  ) {
    super();
    this.dependencies = { policies, records, search, writes, registry, pipeline, gates, budgets, methods };
  }

  list({ agent }: Pick<RequestContext, 'agent'>): readonly ToolDefinition[] {
    const { registry } = this.dependencies;
    const known = this.listings.get(agent.shape);
    if (known?.version === registry.version) return known.tools;
    const tools = this.permitted(agent);
    this.listings.set(agent.shape, { version: registry.version, tools });
    return tools;
  }

  has(name: string): boolean {
    return this.dependencies.registry.get(name) !== undefined;
  }

  override permits({ agent }: Pick<RequestContext, 'agent'>, name: string, args: unknown): boolean {
    const tool = this.list({ agent }).find((listed) => listed.name === name);
    return (
      tool !== undefined &&
      tierCovers(agent.permissions, effectiveTier(tool, args, this.dependencies.methods))
    );
  }

  async run(name: string, args: unknown, context: RequestContext): Promise<ToolOutcome> {
    const observed = context.telemetry?.tool(name);
    try {
      return await this.runObserved(name, args, context, observed);
    } finally {
      // A run without a record has ended as well.
      observed?.ends();
    }
  }

  private runObserved(
    name: string,
    args: unknown,
    context: RequestContext,
    observed: ToolTelemetry | undefined,
  ): Promise<ToolOutcome> {
    const { registry, pipeline, budgets } = this.dependencies;
    const { approver } = context;
    const entry = registry.get(name);
    const definition = entry?.definition;
    const notes: CallNotes = { ...(approver !== undefined && { approver }) };
    const budgeted = budgets.open(context.agent);
    const meter = budgeted ?? new CallMeter();
    const run = new AbortController();
    const clock = new RunClock();
    const execution: ToolExecution = {
      name,
      definition,
      args,
      context,
      abort: (reason) => run.abort(reason),
      begin: () => {
        notes.begun = true;
        observed?.begins();
      },
      approved: (approvedBy) => (notes.approver = approvedBy),
      flag: (phrase) => (notes.phrase = phrase),
      budgeted,
      meter,
      notes,
      clock,
      observed,
      anotherCall: () => makeCall(),
    };
    const ownContext = contextOfRun(context, { signal: run.signal, observed, meter });
    const makeCall = callsOf(this.dependencies, { definition, name, context, ownContext, clock, notes });
    return runThrough(pipeline, entry?.handler ?? missingHandler, execution);
  }

  private permitted(agent: Agent): readonly ToolDefinition[] {
    const { registry, gates } = this.dependencies;
    return registry
      .all()
      .map(({ definition }) => definition)
      .filter((tool) => mayUse(agent, tool, gates));
  }
}

/** Reached only if the tool gate admitted an unknown name, which is an internal error. */
function missingHandler(): never {
  throw new Error('a tool without a handler passed the tool gate');
}
