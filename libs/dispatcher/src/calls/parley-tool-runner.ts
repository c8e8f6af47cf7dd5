import { Injectable } from '@nestjs/common';
import {
  type Agent,
  type AgentShape,
  type CallContext,
  refusals,
  tierCovers,
  type ToolTelemetry,
} from '#agent';
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
import { CallJournal, type CallNotes } from './call-journal.js';
import { type BudgetedCall, CallMeter, DataBudgets } from './data-budgets.js';
import { failedRun, refusalByProtocol } from './failed-run.js';
import { callsOf, type CallSources, contextOfRun, RunClock, type ToolExecution } from './tool-execution.js';
import { runThrough, ToolPipeline } from './tool-pipeline.js';
import { ContinuesAsTask, RUN_HANDED_OVER } from '../tasks/task-store.js';

interface RunnerParts extends CallSources {
  readonly registry: ToolRegistry;
  readonly pipeline: ToolPipeline;
  readonly gates: EnvironmentGates;
  readonly journal: CallJournal;
  readonly budgets: DataBudgets;
  readonly methods: CallableMethods;
}

/** What is kept of one run while it goes on. */
interface RunBooks {
  readonly notes: CallNotes;
  readonly observed: ToolTelemetry | undefined;
  readonly meter: CallMeter;
  readonly budgeted: BudgetedCall | null;
}

interface Listing {
  readonly version: number;
  readonly tools: readonly ToolDefinition[];
}

/** Runs tools through the pipeline and turns every outcome, refusals and faults included, into one value and one audit record. */
@Injectable()
export class ParleyToolRunner extends ToolRunner {
  /** What an agent may call follows from its shape alone; the same array while nothing changed. */
  private readonly listings = new WeakMap<AgentShape, Listing>();

  private readonly parts: RunnerParts;

  constructor(
    policies: Policies,
    records: GovernedRecordsSource,
    search: GovernedSearchSource,
    writes: GovernedWritesSource,
    registry: ToolRegistry,
    pipeline: ToolPipeline,
    gates: ToolEnvironment,
    journal: CallJournal,
    budgets: DataBudgets,
    methods: CallableMethods,
  ) {
    super();
    this.parts = { policies, records, search, writes, registry, pipeline, gates, journal, budgets, methods };
  }

  list({ agent }: Pick<CallContext, 'agent'>): readonly ToolDefinition[] {
    const { registry } = this.parts;
    const known = this.listings.get(agent.shape);
    if (known?.version === registry.version) return known.tools;
    const tools = this.permitted(agent);
    this.listings.set(agent.shape, { version: registry.version, tools });
    return tools;
  }

  has(name: string): boolean {
    return this.parts.registry.get(name) !== undefined;
  }

  override permits({ agent }: Pick<CallContext, 'agent'>, name: string, args: unknown): boolean {
    const tool = this.list({ agent }).find((listed) => listed.name === name);
    return tool !== undefined && tierCovers(agent.permissions, effectiveTier(tool, args, this.parts.methods));
  }

  async run(name: string, args: unknown, context: CallContext): Promise<ToolOutcome> {
    const observed = context.telemetry?.tool(name);
    try {
      return await this.runRecorded(name, args, context, observed);
    } finally {
      // What left no record has ended as well.
      observed?.ends();
    }
  }

  private async runRecorded(
    name: string,
    args: unknown,
    context: CallContext,
    observed: ToolTelemetry | undefined,
  ): Promise<ToolOutcome> {
    const started = performance.now();
    const { approver } = context;
    const notes: CallNotes = { ...(approver !== undefined && { approver }) };
    const record = (outcome: ToolOutcome) => {
      const milliseconds = performance.now() - started;
      return this.parts.journal.record({ tool: name, args, context, outcome, milliseconds, notes, observed });
    };
    let outcome: ToolOutcome;
    try {
      outcome = await this.paidFor(context.agent, notes, (meter, budgeted) =>
        this.execute(name, args, context, { notes, observed, meter, budgeted }),
      );
    } catch (fault) {
      if (fault instanceof ContinuesAsTask) fault.approver = notes.approver;
      const refusal = refusalByProtocol(fault);
      if (refusal) {
        notes.error = fault;
        // Nothing is answered but the fault itself.
        record({ ok: false, refusal })?.catch(() => undefined);
      }
      throw fault;
    }
    if (context.signal.reason === RUN_HANDED_OVER) return outcome;
    const kept = record(outcome);
    return kept ? this.onceKept(kept, name, outcome, notes) : outcome;
  }

  /** A result that nobody could account for is not handed out. What a gate refused, holds none. */
  private async onceKept(
    kept: Promise<void>,
    name: string,
    outcome: ToolOutcome,
    notes: CallNotes,
  ): Promise<ToolOutcome> {
    try {
      await kept;
      return outcome;
    } catch {
      if (!notes.begun) return outcome;
      const definition = this.parts.registry.get(name)?.definition;
      return { ok: false, refusal: refusals.auditWithheld(name, mayHaveWritten(definition)) };
    }
  }

  /** Whatever comes of a call, what it used is charged before it is answered: the next one finds it counted. */
  private async paidFor(
    agent: Agent,
    notes: CallNotes,
    call: (meter: CallMeter, budgeted: BudgetedCall | null) => Promise<ToolOutcome>,
  ): Promise<ToolOutcome> {
    const { budgets } = this.parts;
    const budgeted = budgets.open(agent);
    const meter = budgeted ?? new CallMeter();
    let bytes = 0;
    try {
      const outcome = await call(meter, budgeted);
      if (outcome.ok) bytes = Buffer.byteLength(outcome.text);
      return outcome;
    } finally {
      notes.use = meter.settle(bytes);
      if (budgeted) await budgets.charge(budgeted, notes.use);
    }
  }

  private async execute(
    name: string,
    args: unknown,
    context: CallContext,
    { notes, observed, meter, budgeted }: RunBooks,
  ): Promise<ToolOutcome> {
    const { registry, pipeline } = this.parts;
    const entry = registry.get(name);
    const definition = entry?.definition;
    const run = new AbortController();
    const { signal } = run;
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
      approved: (approver) => (notes.approver = approver),
      flag: (phrase) => (notes.phrase = phrase),
      budgeted,
      clock,
      observed,
      anotherCall: () => makeCall(),
    };
    const ownContext = contextOfRun(context, { signal, observed, meter });
    const makeCall = callsOf(this.parts, { definition, name, context, ownContext, clock, notes });
    try {
      return await runThrough(pipeline, entry?.handler ?? missingHandler, [args, makeCall(), execution]);
    } catch (error) {
      const { refusal, error: thrown } = failedRun(error, name);
      notes.error = thrown;
      return { ok: false, refusal };
    }
  }

  private permitted(agent: Agent): readonly ToolDefinition[] {
    const { registry, gates } = this.parts;
    return registry
      .all()
      .map(({ definition }) => definition)
      .filter((tool) => mayUse(agent, tool, gates));
  }
}

/** Only a tool that says so changes anything; one of a higher tier may have other ways. */
function mayHaveWritten(tool: ToolDefinition | undefined): boolean {
  return tool?.permission !== 'readonly' || (tool.needs?.length ?? 0) > 0;
}

/** Reached only if the tool gate let an unknown name pass, which would be a fault of ours. */
function missingHandler(): never {
  throw new Error('a tool without a handler passed the tool gate');
}
