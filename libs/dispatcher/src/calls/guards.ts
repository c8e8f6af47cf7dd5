import { type ExecutionContext, Inject, Injectable, Logger } from '@nestjs/common';
import { type Agent, orThrow, refusals, Refused } from '#core';
import { AuditSink } from '#audit';
import {
  envGate,
  type EnvironmentGates,
  mayUse,
  methodGate,
  Policies,
  suggestNames,
  toolGate,
} from '#policy';
import {
  asksForPreview,
  CallableMethods,
  calledMethod,
  effectiveTier,
  type ToolDefinition,
  ToolEnvironment,
  ToolRegistry,
} from '#tools';
import { Approver, type DecisionGround, previewOf } from './approval.js';
import { DataBudgets } from './data-budgets.js';
import { type Gate, toolExecutionOf } from './tool-execution.js';
import { tasksNotDeclared } from '../client-capabilities.js';
import { beginsTask, ContinuesAsTask } from '../tasks/task-store.js';

// A guard never returns false: it throws the refusal, which keeps the reason.

/** Consumes one call of the principal's rate limit. */
@Injectable()
export class RateLimitGuard implements Gate {
  readonly gate = 'rate_limit';
  private readonly logger = new Logger(RateLimitGuard.name);

  async canActivate(host: ExecutionContext): Promise<true> {
    const { agent, background } = toolExecutionOf(host).context;
    // The call was counted when it was made.
    if (background === 'running') return true;
    await spendCall(agent, this.logger);
    return true;
  }
}

/** Refuses a call when its outcome cannot be recorded. */
@Injectable()
export class AuditGuard implements Gate {
  readonly gate = 'audit';

  constructor(@Inject(AuditSink) private readonly audit: Pick<AuditSink, 'admit'>) {}

  canActivate(): true {
    const retryAfter = this.audit.admit();
    if (retryAfter !== null) throw new Refused(refusals.auditUnavailable(retryAfter));
    return true;
  }
}

/** Operator filter, client-mode gates and tier. Listing uses the same decision. */
@Injectable()
export class ToolGuard implements Gate {
  readonly gate = 'tool';

  constructor(
    private readonly registry: ToolRegistry,
    @Inject(ToolEnvironment) private readonly gates: EnvironmentGates,
  ) {}

  canActivate(host: ExecutionContext): true {
    const { name, definition, context } = toolExecutionOf(host);
    const { agent } = context;
    if (!definition) throw new Refused(unknownTool(name, agent, this.usable(agent)));
    const clientSafe = () => this.usable(agent).flatMap((tool) => (tool.clientSafe ? [tool.name] : []));
    orThrow(toolGate(agent, name, definition, clientSafe));
    return true;
  }

  /** A tool that a gate would refuse is not listed. */
  private usable(agent: Agent): ToolDefinition[] {
    return this.registry
      .all()
      .map(({ definition }) => definition)
      .filter((tool) => mayUse(agent, tool, this.gates));
  }
}

function unknownTool(name: string, agent: Agent, usable: readonly ToolDefinition[]) {
  const near = suggestNames(
    name,
    usable.map((tool) => tool.name),
  );
  return refusals.unknownTool(name.slice(0, 128), agent.permissions, near);
}

/** Limits that only the process environment can lift. */
@Injectable()
export class EnvironmentGuard implements Gate {
  readonly gate = 'env_gates';

  constructor(@Inject(ToolEnvironment) private readonly gates: EnvironmentGates) {}

  canActivate(host: ExecutionContext): true {
    const { name, definition, context } = toolExecutionOf(host);
    orThrow(envGate(context.agent, name, this.gates, definition));
    return true;
  }
}

/**
 * Checks the arguments of built-in tools against their schema. A call with other arguments never requests approval. For
 * a class that is hidden from the agent only the class gate answers.
 */
@Injectable()
export class ArgumentsGuard implements Gate {
  readonly gate = 'arguments';

  constructor(
    @Inject(ToolRegistry) private readonly registry: Pick<ToolRegistry, 'get'>,
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
  ) {}

  canActivate(host: ExecutionContext): true | Promise<true> {
    const { name, args, context } = toolExecutionOf(host);
    const { switches } = this.policies.of(context.agent);
    if (switches.unknownArguments === 'ignore') return true;
    try {
      this.registry.get(name)?.refuseUnknown?.(args);
      return true;
    } catch (error) {
      return classOutOfSight(host).then((refused) => {
        throw refused ?? error;
      });
    }
  }
}

/** The result of the class gate for the class in the arguments, when it is hidden from the agent. */
async function classOutOfSight(host: ExecutionContext): Promise<Refused | null> {
  const { args, anotherCall } = toolExecutionOf(host);
  const className = (args as { class_name?: unknown } | null)?.class_name;
  if (typeof className !== 'string') return null;
  try {
    await anotherCall().records.describe(className);
    return null;
  } catch (error) {
    const kind = error instanceof Refused ? error.refusal.details?.kind : undefined;
    if (kind === 'hidden_class' || kind === 'class_filter') return error as Refused;
    if (error instanceof Refused) return null;
    throw error;
  }
}

/** Refuses a call when its data budgets are used up. */
@Injectable()
export class BudgetGuard implements Gate {
  readonly gate = 'budget';

  constructor(private readonly budgets: DataBudgets) {}

  canActivate(host: ExecutionContext): true | Promise<true> {
    const { budgeted, context } = toolExecutionOf(host);
    if (!budgeted) return true;
    // The run of a task was counted when it was called. A budget that is used up by now still refuses it.
    return this.budgets.admit(budgeted, context.background !== 'running').then(() => true);
  }
}

/** Tools of a listed tier run only with an approval. Without an available approver the call is refused. */
@Injectable()
export class ApprovalGuard implements Gate {
  readonly gate = 'approval';

  constructor(
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
    private readonly approver: Approver,
    private readonly methods: CallableMethods,
    @Inject(ToolEnvironment) private readonly gates: EnvironmentGates,
  ) {}

  canActivate(host: ExecutionContext): true | Promise<true> {
    const { definition, args, context } = toolExecutionOf(host);
    // The call that began the task passed this gate.
    if (!definition || context.background === 'running') return true;
    const permission = effectiveTier(definition, args, this.methods);
    const { switches, version: policyVersion } = this.policies.of(context.agent);
    if (!switches.requireApprovalFor.includes(permission)) return true;
    const method = definition.name === 'call_method' ? calledMethod(args, this.methods) : undefined;
    // No approval is requested for a call that would be refused anyway or that changes nothing.
    if (method) orThrow(methodGate(context.agent, method, this.gates));
    if (method && asksForPreview(args)) return true;
    return this.approved(host, definition, { permission, policyVersion });
  }

  private async approved(
    host: ExecutionContext,
    tool: ToolDefinition,
    ground: DecisionGround,
  ): Promise<true> {
    const { args, context } = toolExecutionOf(host);
    const decision = await this.approver.review({
      tool,
      args,
      context,
      effectivePermission: ground.permission,
      preview: () => previewOf(host, ground),
    });
    if (decision.by) toolExecutionOf(host).approved(decision.by.principal);
    if (decision.outcome === 'approve') return true;
    throw new Refused(refusals.approvalDenied(decision.reason));
  }
}

/** Checkpoint 1: a call that was cancelled before it began does nothing. */
@Injectable()
export class CancellationGuard implements Gate {
  readonly gate = 'cancellation';

  canActivate(host: ExecutionContext): true {
    const { signal } = toolExecutionOf(host).context;
    if (signal.aborted) throw new Refused(refusals.cancelled(cancelReason(signal)));
    return true;
  }
}

/** The last gate: a call that continues as a task starts the task here, after every other gate. */
@Injectable()
export class TaskGuard implements Gate {
  readonly gate = 'task';

  canActivate(host: ExecutionContext): true {
    const { definition, context } = toolExecutionOf(host);
    const { background } = context;
    if (background === 'running') return true;
    if (definition?.task === 'required' && background === undefined) throw tasksNotDeclared();
    if (beginsTask(toolExecutionOf(host))) throw new ContinuesAsTask();
    return true;
  }
}

/** The reason a transport gave for the end of a call. The caller does not receive other abort reasons. */
export function cancelReason(signal: AbortSignal): string | undefined {
  return typeof signal.reason === 'string' ? signal.reason : undefined;
}

/**
 * Consumes one call of the principal's rate limit. While the limiter fails, it refuses every call for a random time.
 * @throws Refused
 */
export async function spendCall(
  { shape, principal }: Agent,
  logger: { error(line: string): void },
): Promise<void> {
  let verdict;
  try {
    verdict = await shape.rateLimiter.check(principal);
  } catch (error) {
    logger.error(`the rate limiter of '${shape.name}' failed: ${String(error)}`);
    throw new Refused(refusals.limitUncountable('rate_limit', 1 + Math.random() * 4));
  }
  if (verdict) throw new Refused(refusals.rateLimited(verdict.limit, verdict.window, verdict.retryAfter));
}
