import { Inject, Injectable, Logger } from '@nestjs/common';
import { type Agent, inexactIn, orThrow, type Refusal, refusals, Refused } from '#core';
import { AuditSink } from '#audit';
import { envGate, type EnvironmentGates, methodGate, Policies, suggestNames, toolGate } from '#policy';
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
import { ToolListings } from './tool-listings.js';
import { type Awaitable, type Guard, type ToolRun, beginsTask, ContinuesAsTask } from './tool-run.js';
import { tasksNotDeclared } from '../protocol.js';

/** Consumes one call of the principal's rate limit. */
@Injectable()
export class RateLimitGuard implements Guard {
  readonly gate = 'rate_limit';
  private readonly logger = new Logger(RateLimitGuard.name);

  check({ context: { agent, background } }: ToolRun): Awaitable<Refusal | null> {
    // The call was counted when it was made.
    return background === 'running' ? null : rateVerdict(agent, this.logger);
  }
}

/** Refuses a call when its outcome cannot be recorded. */
@Injectable()
export class AuditGuard implements Guard {
  readonly gate = 'audit';

  constructor(@Inject(AuditSink) private readonly audit: Pick<AuditSink, 'admit'>) {}

  check(): Refusal | null {
    const retryAfter = this.audit.admit();
    return retryAfter === null ? null : refusals.auditUnavailable(retryAfter);
  }
}

/** Operator filter, client-mode gates and tier. Listing uses the same decision. */
@Injectable()
export class ToolGuard implements Guard {
  readonly gate = 'tool';

  constructor(private readonly listings: ToolListings) {}

  check({ name, definition, context: { agent } }: ToolRun): Refusal | null {
    if (!definition) return unknownTool(name, agent, this.listings.of(agent));
    const clientSafe = () => this.listings.of(agent).flatMap((tool) => (tool.clientSafe ? [tool.name] : []));
    return toolGate(agent, name, definition, clientSafe) ?? null;
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
export class EnvironmentGuard implements Guard {
  readonly gate = 'env_gates';

  constructor(@Inject(ToolEnvironment) private readonly gates: EnvironmentGates) {}

  check({ name, definition, context }: ToolRun): Refusal | null {
    return envGate(context.agent, name, this.gates, definition) ?? null;
  }
}

/**
 * Refuses arguments with a number that a double does not hold, and checks those of built-in tools against their schema. A call with other
 * arguments never requests approval. For a class that is hidden from the agent only the class gate answers.
 */
@Injectable()
export class ArgumentsGuard implements Guard {
  readonly gate = 'arguments';

  constructor(
    @Inject(ToolRegistry) private readonly registry: Pick<ToolRegistry, 'get'>,
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
  ) {}

  check(run: ToolRun): Awaitable<Refusal | null> {
    const { name, args, context } = run;
    const { switches } = this.policies.of(context.agent);
    try {
      const inexact = inexactIn(args);
      if (inexact !== undefined) throw new Refused(refusals.invalidArgument(inexact));
      if (switches.unknownArguments !== 'ignore') this.registry.get(name)?.refuseUnknown?.(args);
      return null;
    } catch (error) {
      return classOutOfSight(run).then((refused) => {
        throw refused ?? error;
      });
    }
  }
}

/** The result of the class gate for the class in the arguments, when it is hidden from the agent. */
async function classOutOfSight(run: ToolRun): Promise<Refused | null> {
  const className = (run.args as { class_name?: unknown } | null)?.class_name;
  if (typeof className !== 'string') return null;
  try {
    await run.anotherCall().records.describe(className);
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
export class BudgetGuard implements Guard {
  readonly gate = 'budget';

  constructor(private readonly budgets: DataBudgets) {}

  check({ budgeted, context }: ToolRun): Awaitable<null> {
    if (!budgeted) return null;
    // The run of a task was counted when it was called. A budget that is used up by now still refuses it.
    return this.budgets.admit(budgeted, context.background !== 'running').then(() => null);
  }
}

/** Tools of a listed tier run only with an approval. Without an available approver the call is refused. */
@Injectable()
export class ApprovalGuard implements Guard {
  readonly gate = 'approval';

  constructor(
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
    private readonly approver: Approver,
    private readonly methods: CallableMethods,
    @Inject(ToolEnvironment) private readonly gates: EnvironmentGates,
  ) {}

  check(run: ToolRun): Awaitable<Refusal | null> {
    const { definition, args, context } = run;
    // The call that began the task passed this guard.
    if (!definition || context.background === 'running') return null;
    const { switches, version: policyVersion } = this.policies.of(context.agent);
    if (switches.requireApprovalFor.length === 0) return null;
    const permission = effectiveTier(definition, args, this.methods);
    if (!switches.requireApprovalFor.includes(permission)) return null;
    const method = definition.name === 'call_method' ? calledMethod(args, this.methods) : undefined;
    // No approval is requested for a call that would be refused anyway or that changes nothing.
    const refused = method && methodGate(context.agent, method, this.gates);
    if (refused) return refused;
    if (method && asksForPreview(args)) return null;
    return this.reviewed(run, definition, { permission, policyVersion });
  }

  private async reviewed(
    run: ToolRun,
    tool: ToolDefinition,
    ground: DecisionGround,
  ): Promise<Refusal | null> {
    const { args, context } = run;
    const decision = await this.approver.review({
      tool,
      args,
      context,
      effectivePermission: ground.permission,
      preview: () => previewOf(run, ground),
    });
    if (decision.by) run.approver = decision.by.principal;
    return decision.outcome === 'approve' ? null : refusals.approvalDenied(decision.reason);
  }
}

/** Checkpoint 1: a call that was cancelled before it began does nothing. */
@Injectable()
export class CancellationGuard implements Guard {
  readonly gate = 'cancellation';

  check({ isCancelled, context }: ToolRun): Refusal | null {
    return isCancelled ? refusals.cancelled(cancelReason(context.signal)) : null;
  }
}

/** The last gate: a call that continues as a task starts the task here, after every other gate. */
@Injectable()
export class TaskGuard implements Guard {
  readonly gate = 'task';

  check(run: ToolRun): null {
    const { definition, context } = run;
    if (context.background === 'running') return null;
    if (definition?.task === 'required' && context.background === undefined) throw tasksNotDeclared();
    if (beginsTask(run)) throw new ContinuesAsTask();
    return null;
  }
}

/** The reason a transport gave for the end of a call. The caller does not receive other abort reasons. */
export function cancelReason(signal: AbortSignal): string | undefined {
  return typeof signal.reason === 'string' ? signal.reason : undefined;
}

/** Consumes one call of the principal's rate limit. While the limiter fails, it refuses every call for a random time. */
async function rateVerdict(
  { definition, principal }: Agent,
  logger: { error(line: string): void },
): Promise<Refusal | null> {
  let verdict;
  try {
    verdict = await definition.rateLimiter.check(principal);
  } catch (error) {
    logger.error(`the rate limiter of '${definition.name}' failed: ${String(error)}`);
    return refusals.limitUncountable('rate_limit', 1 + Math.random() * 4);
  }
  return verdict && refusals.rateLimited(verdict.limit, verdict.window, verdict.retryAfter);
}

/** As the guard does, for code outside of tools. @throws Refused */
export async function spendCall(agent: Agent, logger: { error(line: string): void }): Promise<void> {
  orThrow(await rateVerdict(agent, logger));
}
