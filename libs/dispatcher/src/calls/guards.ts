import { type CanActivate, Inject, Injectable } from '@nestjs/common';
import {
  cutText,
  type Agent,
  CurrentAgents,
  inexactIn,
  orThrow,
  type Refusal,
  refusals,
  Refused,
  spendLimit,
  refuse,
} from '#core';
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
  mayChangeData,
  type ToolDefinition,
  ToolEnvironment,
} from '#tools';
import {
  APPROVAL_LAPSED,
  type ApprovalDecision,
  type ApprovalRequest,
  Approver,
  createPreview,
  createSetPreview,
  type DecisionGround,
} from './approval.js';
import { DataBudgets } from './call-limits.js';
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
  return refusals.unknownTool(cutText(name, 128), agent.permissions, near);
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
      if (inexact !== undefined) throw refuse.invalidArgument(inexact);
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

/**
 * Tools of a listed tier run only with an approval, and only while the policy and the agent are those for which it was given. Without an
 * available approver the call is refused.
 */
@Injectable()
export class ApprovalGuard implements CanActivate {
  readonly gate = 'approval';

  constructor(
    private readonly approver: Approver,
    private readonly methods: CallableMethods,
    @Inject(ToolEnvironment) private readonly gates: EnvironmentGates,
    private readonly changes: Changes,
    @Inject(CurrentAgents) private readonly agents: Pick<CurrentAgents, 'isCurrent'>,
  ) {}

  canActivate(call: ParleyToolCall): Awaitable<true> {
    const { definition, request, approval } = call;
    const ground = definition && this.findGround(call, definition);
    if (!ground) return true;
    // The call that began the task was approved, maybe under another policy.
    if (request.background === 'running')
      return admitUnless(
        approval?.policyVersion === ground.policyVersion ? null : refusals.approvalDenied(APPROVAL_LAPSED),
      );
    return definition.approval === 'always'
      ? this.reviewChanges(call, definition, ground)
      : this.review(call, definition, ground);
  }

  /** What an approval of the call would depend on; null: it needs none. @throws Refused for a call that would be refused anyway */
  private findGround(call: ParleyToolCall, tool: ToolDefinition): DecisionGround | null {
    const { args, agent } = call;
    const { switches, version: policyVersion } = call.policy;
    if (tool.approval === 'always') return { permission: tool.permission, policyVersion };
    if (tool.approval === 'never') return null;
    // A proposal changes nothing: the set that it belongs to is approved.
    if (isProposal(agent, tool.name)) return null;
    if (switches.requireApprovalFor.length === 0) return null;
    const permission = effectiveTier(tool, args, this.methods);
    if (!switches.requireApprovalFor.includes(permission)) return null;
    const method = tool.name === 'call_method' ? findCalledMethod(args, this.methods) : undefined;
    if (method) {
      orThrow(methodGate(agent, method, this.gates));
      // It changes nothing.
      if (asksForPreview(args)) return null;
    }
    return { permission, policyVersion };
  }

  /** One decision on a whole change set, which nobody changes while it is asked about. */
  private async reviewChanges(
    call: ParleyToolCall,
    tool: ToolDefinition,
    ground: DecisionGround,
  ): Promise<true> {
    const { changes } = this;
    const id = await changes.prepare(call.name, call.args, call);
    let digest = '';
    const preview = async () => {
      const seen = await changes.preview(id, call);
      digest = seen.digest;
      call.closeAccess();
      return createSetPreview(call, ground, seen);
    };
    const decision = await this.ask(call, tool, { ground, preview });
    call.approval = { ...call.approval, changes: { id, digest } };
    // Without a person it was denied because it is no longer what was shown: it may be submitted again.
    if (decision.outcome === 'deny' && decision.by) await changes.deny(id, call);
    return this.settle(call, decision);
  }

  private async review(call: ParleyToolCall, tool: ToolDefinition, ground: DecisionGround): Promise<true> {
    const preview = () => createPreview(call, ground);
    return this.settle(call, await this.ask(call, tool, { ground, preview }));
  }

  private async ask(
    call: ParleyToolCall,
    tool: ToolDefinition,
    { ground, preview }: Pick<ApprovalRequest, 'preview'> & { readonly ground: DecisionGround },
  ): Promise<ApprovalDecision> {
    const { args, request: context } = call;
    const { permission: effectivePermission, policyVersion } = ground;
    const isCurrent = () => this.agents.isCurrent(context.agent);
    const asked = { tool, args, context, effectivePermission, policyVersion, isCurrent, preview };
    const decision = await call.clock.suspended(() => this.approver.review(asked));
    call.approval = { by: decision.by?.principal, id: decision.caseId, policyVersion };
    return decision;
  }

  /** A call keeps the rights of its beginning, and may have waited for minutes: it does not act with rights that there are no more. */
  private settle({ agent }: ParleyToolCall, decision: ApprovalDecision): true {
    const deny = decision.by ? refusals.deniedByPerson : refusals.approvalDenied;
    if (decision.outcome !== 'approve') orThrow(deny(decision.reason));
    return admitUnless(this.agents.isCurrent(agent) ? null : refusals.approvalDenied(APPROVAL_LAPSED));
  }
}

/** Checkpoint 1: a call that was cancelled before it began does nothing, and a task knows of a change before it is made. */
@Injectable()
export class CancellationGuard implements CanActivate {
  readonly gate = 'cancellation';

  canActivate({ request, definition }: ParleyToolCall): Awaitable<true> {
    if (request.aborted) throw refuse.cancelled(request.signal.reason);
    if (!request.beforeChange || !definition || !mayChangeData(definition)) return true;
    return request.beforeChange().then(() => true);
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
