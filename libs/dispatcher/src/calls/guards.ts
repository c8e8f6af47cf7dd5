import { type CanActivate, Inject, Injectable } from '@nestjs/common';
import { type Agent, inexactIn, orThrow, type Refusal, refusals, Refused, spendLimit } from '#core';
import { AuditSink } from '#audit';
import {
  envGate,
  type EnvironmentGates,
  isProposal,
  methodGate,
  refuseTornText,
  suggestNames,
  toolGate,
} from '#policy';
import { SuspendedAgents } from '#state';
import {
  asksForPreview,
  CallableMethods,
  Changes,
  findCalledMethod,
  effectiveTier,
  type ToolDefinition,
  ToolEnvironment,
} from '#tools';
import { Approver, createPreview, createSetPreview, type DecisionGround } from './approval.js';
import { DataBudgets } from './data-budgets.js';
import { ToolListings } from './tool-listings.js';
import type { Awaitable, ParleyToolCall } from './tool-call.js';

/** Refuses the calls of an agent that an operator suspended, and of agents that it made. Before all code of an application. */
@Injectable()
export class SuspensionGuard implements CanActivate {
  readonly gate = 'suspension';

  constructor(private readonly suspended: SuspendedAgents) {}

  canActivate({ agent }: ParleyToolCall): Awaitable<true> {
    const unread = this.suspended.assertActive(agent);
    return unread ? unread.then(() => true) : true;
  }
}

/** Consumes one call of the principal's rate limit. */
@Injectable()
export class RateLimitGuard implements CanActivate {
  readonly gate = 'rate_limit';

  canActivate({ agent, request }: ParleyToolCall): Awaitable<true> {
    // The call of a task was counted when it was made.
    return request.background === 'running' || spendCall(agent);
  }
}

/** Refuses a call when its outcome cannot be recorded. */
@Injectable()
export class AuditGuard implements CanActivate {
  readonly gate = 'audit';

  constructor(@Inject(AuditSink) private readonly audit: Pick<AuditSink, 'admit'>) {}

  canActivate(): true {
    const retryAfter = this.audit.admit();
    return admitUnless(retryAfter === null ? null : refusals.auditUnavailable(retryAfter));
  }
}

/** Operator filter, client-mode gates and tier. Listing uses the same decision. */
@Injectable()
export class ToolGuard implements CanActivate {
  readonly gate = 'tool';

  constructor(private readonly listings: ToolListings) {}

  canActivate({ name, definition, agent }: ParleyToolCall): true {
    if (!definition) throw new Refused(unknownTool(name, agent, this.listings.of(agent)));
    const clientSafe = () => this.listings.of(agent).flatMap((tool) => (tool.clientSafe ? [tool.name] : []));
    return admitUnless(toolGate(agent, name, definition, clientSafe));
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
export class EnvironmentGuard implements CanActivate {
  readonly gate = 'env_gates';

  constructor(@Inject(ToolEnvironment) private readonly gates: EnvironmentGates) {}

  canActivate({ name, definition, agent }: ParleyToolCall): true {
    return admitUnless(envGate(agent, name, this.gates, definition));
  }
}

/**
 * Refuses arguments with a number that a double does not hold or a text with half of a character, and checks those of built-in tools against their schema. A call with other
 * arguments never requests approval. For a class that is hidden from the agent only the class gate answers.
 */
@Injectable()
export class ArgumentsGuard implements CanActivate {
  readonly gate = 'arguments';

  canActivate(call: ParleyToolCall): Awaitable<true> {
    const { args, policy } = call;
    try {
      const inexact = inexactIn(args);
      if (inexact !== undefined) throw new Refused(refusals.invalidArgument(inexact));
      refuseTornText(args, 'arguments');
      if (policy.switches.unknownArguments !== 'ignore') call.registered?.refuseUnknown?.(args);
      return true;
    } catch (error) {
      return classOutOfSight(call).then((refused) => {
        throw refused ?? error;
      });
    }
  }
}

/** The result of the class gate for the class in the arguments, when it is hidden from the agent. */
async function classOutOfSight(call: ParleyToolCall): Promise<Refused | null> {
  const className = (call.args as { class_name?: unknown } | null)?.class_name;
  if (typeof className !== 'string') return null;
  try {
    await call.records.describe(className);
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
export class BudgetGuard implements CanActivate {
  readonly gate = 'budget';

  constructor(private readonly budgets: DataBudgets) {}

  canActivate({ budgeted, request }: ParleyToolCall): Awaitable<true> {
    if (!budgeted) return true;
    // The run of a task was counted when it was called. A budget that is used up by now still refuses it.
    return this.budgets.admit(budgeted, request.background !== 'running').then(() => true);
  }
}

/** Tools of a listed tier run only with an approval. Without an available approver the call is refused. */
@Injectable()
export class ApprovalGuard implements CanActivate {
  readonly gate = 'approval';

  constructor(
    private readonly approver: Approver,
    private readonly methods: CallableMethods,
    @Inject(ToolEnvironment) private readonly gates: EnvironmentGates,
    private readonly changes: Changes,
  ) {}

  canActivate(call: ParleyToolCall): Awaitable<true> {
    const { definition, args, agent, request } = call;
    // The call that began the task passed this guard.
    if (!definition || request.background === 'running') return true;
    const { switches, version: policyVersion } = call.policy;
    if (definition.approval === 'always') return this.reviewChanges(call, definition, policyVersion);
    // A proposal changes nothing: the set that it belongs to is approved.
    if (isProposal(agent, definition.name)) return true;
    if (switches.requireApprovalFor.length === 0) return true;
    const permission = effectiveTier(definition, args, this.methods);
    if (!switches.requireApprovalFor.includes(permission)) return true;
    const method = definition.name === 'call_method' ? findCalledMethod(args, this.methods) : undefined;
    // No approval is requested for a call that would be refused anyway or that changes nothing.
    if (method) {
      orThrow(methodGate(agent, method, this.gates));
      if (asksForPreview(args)) return true;
    }
    return this.review(call, definition, { permission, policyVersion });
  }

  /** One decision on a whole change set, which nobody changes while it is asked about. */
  private async reviewChanges(
    call: ParleyToolCall,
    tool: ToolDefinition,
    policyVersion: string,
  ): Promise<true> {
    const { changes } = this;
    const { args, request, name } = call;
    const ground = { permission: tool.permission, policyVersion };
    const id = await changes.prepare(name, args, call);
    let digest = '';
    const preview = async () => {
      const seen = await changes.preview(id, call);
      digest = seen.digest;
      call.closeAccess();
      return createSetPreview(call, ground, seen);
    };
    const effectivePermission = ground.permission;
    const asked = { tool, args, context: request, effectivePermission, policyVersion, preview };
    const decision = await this.approver.review(asked);
    const { by, caseId } = decision;
    call.approval = { by: by?.principal, id: caseId, changes: { id, digest } };
    // Without a person it was denied because it is no longer what was shown: it may be submitted again.
    if (decision.outcome === 'deny' && by) await changes.refuse(id, call);
    return admitUnless(decision.outcome === 'approve' ? null : refusals.approvalDenied(decision.reason));
  }

  private async review(call: ParleyToolCall, tool: ToolDefinition, ground: DecisionGround): Promise<true> {
    const { args, request } = call;
    const decision = await this.approver.review({
      tool,
      args,
      context: request,
      effectivePermission: ground.permission,
      policyVersion: ground.policyVersion,
      preview: () => createPreview(call, ground),
    });
    const { by, caseId: id } = decision;
    if (by || id !== undefined) call.approval = { by: by?.principal, id };
    return admitUnless(decision.outcome === 'approve' ? null : refusals.approvalDenied(decision.reason));
  }
}

/** Checkpoint 1: a call that was cancelled before it began does nothing. */
@Injectable()
export class CancellationGuard implements CanActivate {
  readonly gate = 'cancellation';

  canActivate({ isCancelled, request }: ParleyToolCall): true {
    return admitUnless(isCancelled ? refusals.cancelled(request.signal.reason) : null);
  }
}

/** Consumes one call of the principal's rate limit. @throws Refused */
export async function spendCall({ definition, principal }: Agent): Promise<true> {
  let cause: string | undefined;
  const verdict = await spendLimit(definition.rateLimiter, principal, (error) => {
    cause = `the limit could not be counted: ${String(error)}`;
  });
  if (!verdict) return true;
  const refusal = refusals.rateLimited(verdict.limit, verdict.window, verdict.retryAfter);
  throw new Refused(cause === undefined ? refusal : { ...refusal, cause });
}

/** @throws Refused when a gate returned a refusal */
function admitUnless(refusal: Refusal | null | undefined): true {
  orThrow(refusal);
  return true;
}
