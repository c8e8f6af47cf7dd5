import { EventEmitter2 } from '@nestjs/event-emitter';
import {
  type Agent,
  type AgentShape,
  assumedName,
  authType,
  type CallContext,
  type Refusal,
  Refused,
  refusals,
  Unauthorized,
} from '#agent';
import { auditedArgumentNames, type AuditRecord, AuditSink } from '#audit';
import type { CallBudget, GovernedRecordsSource, GovernedWritesSource } from '#data';
import { type EnvironmentGates, envGate, type Policy, toolGate } from '#policy';
import {
  type ToolCall,
  type ToolDefinition,
  type ToolNeed,
  type ToolOutcome,
  type ToolRegistry,
  ToolRunner,
} from '#tools';
import type { ToolExecution } from './tool-execution.js';
import { runThrough, type ToolPipeline } from './tool-pipeline.js';

export interface RunnerParts {
  readonly registry: ToolRegistry;
  readonly records: GovernedRecordsSource;
  readonly writes: GovernedWritesSource;
  readonly pipeline: ToolPipeline;
  readonly policy: Policy;
  readonly gates: EnvironmentGates;
  readonly audit: AuditSink;
  readonly events: EventEmitter2;
}

interface Listing {
  readonly version: number;
  readonly tools: readonly ToolDefinition[];
}

/** Runs tools through the pipeline and turns every outcome, refusals and faults included, into one value and one audit record. */
export class ParleyToolRunner extends ToolRunner {
  /** What an agent may call follows from its shape alone; the same array while nothing changed. */
  private readonly listings = new WeakMap<AgentShape, Listing>();

  constructor(private readonly parts: RunnerParts) {
    super();
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

  async run(name: string, args: unknown, context: CallContext): Promise<ToolOutcome> {
    const started = performance.now();
    const outcome = await this.execute(name, args, context);
    this.audit(name, args, context, outcome, performance.now() - started);
    return outcome;
  }

  private async execute(name: string, args: unknown, context: CallContext): Promise<ToolOutcome> {
    const { registry, records, pipeline } = this.parts;
    const entry = registry.get(name);
    const definition = entry?.definition;
    const run = new AbortController();
    const { signal } = run;
    const execution: ToolExecution = {
      name,
      definition,
      args,
      context,
      abort: (reason) => run.abort(reason),
    };
    const ownContext: CallContext = {
      agent: context.agent,
      signal,
      ...(context.correlationId !== undefined && { correlationId: context.correlationId }),
      progress: (update) => context.progress(update),
    };
    const budget: CallBudget = { tool: name, timeout: definition?.timeout ?? 30 };
    const call = {
      ...ownContext,
      tool: definition,
      records: records.for(ownContext, budget),
      ...this.writingDoors(definition?.needs ?? [], ownContext, budget),
    } as ToolCall;
    try {
      return await runThrough(pipeline, entry?.handler ?? missingHandler, [args, call, execution]);
    } catch (error) {
      return { ok: false, refusal: refusalOf(error, name) };
    }
  }

  /** Only what the tool said it needs: one that reads holds nothing that writes. */
  private writingDoors(needs: readonly ToolNeed[], context: CallContext, budget: CallBudget): object {
    const { writes } = this.parts;
    return {
      ...(needs.includes('rows') && { writes: writes.rows(context, budget) }),
      ...(needs.includes('classes') && { classes: writes.classes(context, budget) }),
      ...(needs.includes('methods') && { methods: writes.methods(context, budget) }),
    };
  }

  private permitted(agent: Agent): readonly ToolDefinition[] {
    const { registry, gates } = this.parts;
    return registry
      .all()
      .map(({ definition }) => definition)
      .filter((tool) => {
        const { name } = tool;
        return toolGate(agent, name, tool, () => []) === null && envGate(agent, name, gates, tool) === null;
      });
  }

  private audit(
    name: string,
    args: unknown,
    context: CallContext,
    outcome: ToolOutcome,
    duration: number,
  ): void {
    const { agent } = context;
    const refusal = outcome.ok ? undefined : outcome.refusal;
    const assumed = assumedName(agent.identity);
    const entry: AuditRecord = {
      at: new Date().toISOString(),
      tool: name.slice(0, 128),
      args_keys: auditedArgumentNames(args),
      auth_type: authType(agent.identity),
      using_master_key: agent.usesMasterKey,
      ...(assumed !== null && { identity: assumed }),
      permissions: agent.permissions,
      agent_id: agent.agentId,
      agent_depth: agent.depth,
      agent_name: agent.shape.name,
      principal: agent.principal,
      policy_version: this.parts.policy.version,
      ...(context.correlationId !== undefined && { correlation_id: context.correlationId }),
      ...(agent.tenantId !== null && { tenant_id: agent.tenantId }),
      success: outcome.ok,
      ...(outcome.ok && { result_size: Buffer.byteLength(outcome.text) }),
      duration_ms: Math.round(duration * 100) / 100,
      ...(refusal && { error_code: refusal.code, gate: refusal.gate }),
      ...(refusal?.details?.kind && { denial_kind: refusal.details.kind }),
      ...(refusal?.cause !== undefined && { cause: refusal.cause }),
    };
    this.parts.audit.record(entry);
    this.parts.events.emit('parse.agent.tool_call', entry);
  }
}

/** Reached only if the tool gate let an unknown name pass, which would be a fault of ours. */
function missingHandler(): never {
  throw new Error('a tool without a handler passed the tool gate');
}

function refusalOf(error: unknown, tool: string): Refusal {
  if (error instanceof Refused) return error.refusal;
  // Unauthorized is the edge's to answer, not a tool failure.
  if (error instanceof Unauthorized) throw error;
  const cause = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return refusals.internalError(tool, cause);
}
