import {
  concatMap,
  EMPTY,
  filter,
  first,
  firstValueFrom,
  fromEvent,
  interval,
  map,
  merge,
  Observable,
  switchMap,
  take,
  timer,
} from 'rxjs';
import {
  cutText,
  type FormQuestion,
  ApprovedCallChanged,
  ClientUnreachable,
  toOwner,
  type UnreachableReason,
} from '#core';
import { type ArgumentDigest, oneLine } from '#audit';
import { CHANGED_SETS } from '#data';
import {
  APPROVAL_DECIDED,
  type ApprovalCase,
  type ApprovalStore,
  ApprovalStoreFull,
  type MessageBus,
  SharedStateUnavailable,
  steadyClock,
} from '#state';
import {
  type ApprovalDecision,
  type ApprovalPreview,
  type ApprovalRequest,
  Approver,
  computeDigest,
} from '#dispatcher';

/** Texts of refusals for calls that need an approval. */
const REASONS = {
  undeclared: 'approval required but the client did not advertise the elicitation capability',
  noStream: 'approval required but no listening stream is open to request it',
  noSession: 'approval required but no session correlation id is available',
  notDelivered: 'approval required but the elicitation request could not be delivered',
  aborted: 'approval request aborted (session terminated or stream closed)',
  denied: 'operation denied by approver',
  cancelled: 'operation cancelled by approver',
  withdrawn: 'approval is no longer asked for',
  changed:
    'approval no longer applies: what the operation would change has changed since it was shown; call again',
  used: 'approval was already used by another call',
  approverGone: 'approval no longer applies: who gave it may not decide any more; call again',
  tooMany: 'approval required but too many requests of this caller are pending',
  noSharedState: 'approval required but the state that keeps approvals cannot be reached',
} as const;

/** The answer to a call beyond what one caller may have pending. */
export const TOO_MANY_PENDING: ApprovalDecision = { outcome: 'unavailable', reason: REASONS.tooMany };

/** @param seconds time there was to decide */
function describeTimeout(seconds: number): string {
  return `approval request timed out after ${seconds}s`;
}

/** @param seconds time there was to decide */
function describeUnreachable(unreachable: UnreachableReason, seconds: number): string {
  switch (unreachable) {
    case 'no-session':
      return REASONS.noSession;
    case 'no-stream':
      return REASONS.noStream;
    case 'not-delivered':
      return REASONS.notDelivered;
    case 'timed-out':
      return describeTimeout(seconds);
    case 'aborted':
      return REASONS.aborted;
    case 'withdrawn':
      return `${REASONS.withdrawn}: the change set was discarded or has changed`;
  }
}

const SCHEMA = Object.freeze({
  type: 'object',
  properties: {
    approve: { type: 'boolean', description: 'Whether the operation may run as shown' },
  },
  required: ['approve'],
});

/** Characters of the preview in the message, for clients that show nothing else. */
const MAX_TOLD = 2_000;

/** The elicitation that asks whether a call may run. */
function approvalQuestion(
  { tool, effectivePermission }: Pick<ApprovalRequest, 'tool' | 'effectivePermission'>,
  shown: Readonly<Record<string, unknown>>,
): FormQuestion {
  return {
    kind: 'form',
    message:
      `Approve the ${effectivePermission} operation '${tool.name}'? Review the change before you decide.\n\n` +
      formatFields(shown),
    schema: SCHEMA,
    meta: { 'parse.tool': tool.name, 'parse.permission': effectivePermission, 'parse.preview': shown },
  };
}

/** Stored text is escaped, so that it cannot imitate other lines. */
function formatFields(shown: Readonly<Record<string, unknown>>): string {
  const lines = JSON.stringify(shown, null, 2).split('\n').map(oneLine).join('\n');
  const told = cutText(lines, MAX_TOLD);
  if (told === lines) return lines;
  return `${told}…\n\n${lines.length - told.length} more characters are not in this message: decline unless your client shows the whole change.`;
}

const QUESTION = 'approve';
/** Key under which a continued call remembers the decision. */
const CLIENT_GRANT = 'approval.client';

/**
 * Asks the person at the calling client. If the client cannot be asked, times out or answers anything but yes, the
 * call is denied.
 */
export class ClientApprover extends Approver {
  /**
   * @param timeout seconds that a client has to answer; used in messages, not measured here
   * @param bus tells of change sets that are over while the person decides
   */
  constructor(
    private readonly timeout: number,
    private readonly bus: Pick<MessageBus, 'messages'>,
  ) {
    super();
  }

  async review(request: ApprovalRequest): Promise<ApprovalDecision> {
    const { clientRequests } = request.context;
    if (!clientRequests) return { outcome: 'unavailable', reason: REASONS.undeclared };
    const { shown, holdsFor, changeSet } = await request.preview();
    const by = await clientRequests.granted?.recall(CLIENT_GRANT, holdsFor);
    if (by !== undefined) return { outcome: 'approve', by: { principal: by, via: 'client' }, again: true };
    const question = approvalQuestion(request, shown);
    // In the stateless era the protocol answers for a capability that was not declared.
    if (!clientRequests.canAnswer(question) && !clientRequests.postpone) {
      return { outcome: 'unavailable', reason: REASONS.undeclared };
    }
    const withdrawal = new AbortController();
    const watching = this.watchSet(changeSet, holdsFor, request).subscribe(() => withdrawal.abort());
    try {
      const { signal: withdrawn } = withdrawal;
      const answer = await clientRequests.ask(QUESTION, question, { once: { holdsFor }, withdrawn });
      if (answer.action === 'decline') return this.deny(request, REASONS.denied);
      if (answer.action === 'cancel') return this.deny(request, REASONS.cancelled);
      const { approve } = answer.content;
      if (approve === false) return this.deny(request, REASONS.denied);
      if (approve !== true) return this.deny(request, REASONS.cancelled);
    } catch (error) {
      return this.decideOnFailure(error);
    } finally {
      watching.unsubscribe();
    }
    // The answer may have taken minutes: the change must still be the one that was approved.
    const { holdsFor: now } = await request.preview();
    if (now !== holdsFor) return { outcome: 'deny', reason: REASONS.changed };
    clientRequests.granted?.keep(CLIENT_GRANT, holdsFor, request.context.agent.principal);
    return { outcome: 'approve', by: byClient(request) };
  }

  /** Emits once the set is not what the person was shown. */
  private watchSet(changeSet: string | undefined, holdsFor: string, request: ApprovalRequest) {
    if (changeSet === undefined) return EMPTY;
    return this.bus.messages(CHANGED_SETS).pipe(
      filter(({ set }) => set === changeSet),
      concatMap(() => request.preview().catch(() => null)),
      filter((now) => now?.holdsFor !== holdsFor),
      take(1),
    );
  }

  private deny(request: ApprovalRequest, reason: string): ApprovalDecision {
    return { outcome: 'deny', reason, by: byClient(request) };
  }

  /** @throws errors that the protocol answers, such as a question that is only now sent */
  private decideOnFailure(error: unknown): ApprovalDecision {
    if (error instanceof ClientUnreachable)
      return { outcome: 'unavailable', reason: describeUnreachable(error.reason, this.timeout) };
    if (error instanceof ApprovedCallChanged) return { outcome: 'deny', reason: REASONS.changed };
    if (error instanceof SharedStateUnavailable)
      return { outcome: 'unavailable', reason: REASONS.noSharedState };
    throw error;
  }
}

const byClient = ({ context }: ApprovalRequest) => ({
  principal: context.agent.principal,
  via: 'client' as const,
});

export interface StoredApproverOptions {
  /** Seconds until a case expires. */
  readonly expiry: number;
  /** Milliseconds that a call of the stateless era waits before its client is asked to repeat it. Default 20,000. */
  readonly timeout?: number;
}

export interface StoredApproverDependencies {
  readonly store: ApprovalStore;
  readonly bus: MessageBus;
  readonly digest: Pick<ArgumentDigest, 'of'>;
  /** Called for every new case. */
  readonly announce: (opened: ApprovalCase) => void;
  /** Whether an agent of this name may decide now. */
  readonly mayDecide: (agent: string) => boolean;
}

/** Key under which a continued call remembers the decision. */
const STORED_GRANT = 'approval.desk';
/** Key under which it remembers the id of its case. */
const STORED_CASE = 'approval.case';
/** Key under which it remembers the agent that decided. */
const STORED_AGENT = 'approval.agent';

type Waited = 'waiting' | 'aborted' | 'expired';

/** Milliseconds between two polls of the case, in case the announcement was lost. */
const LOOK_AGAIN = 5_000;

/**
 * Stores a case for another person and waits for the decision. The case outlives the call: a repeated call finds it,
 * and an approval is used by one call.
 */
export class StoredApprover extends Approver {
  constructor(
    private readonly dependencies: StoredApproverDependencies,
    private readonly options: StoredApproverOptions,
  ) {
    super();
  }

  async review(request: ApprovalRequest): Promise<ApprovalDecision> {
    try {
      const preview = await request.preview();
      const by = await request.context.clientRequests?.granted?.recall(STORED_GRANT, preview.holdsFor);
      if (by !== undefined) {
        const { granted } = request.context.clientRequests ?? {};
        const caseId = await granted?.recall(STORED_CASE, preview.holdsFor);
        const agent = await granted?.recall(STORED_AGENT, preview.holdsFor);
        if (!this.stillDecides(agent)) return approverGone(caseId);
        const decided = {
          by: { principal: by, via: 'desk' as const },
          ...(caseId !== undefined && { caseId }),
        };
        return { outcome: 'approve', ...decided, again: true };
      }
      const { opened, isNew } = await this.dependencies.store.open(
        draftCase(request, preview, this.dependencies.digest),
        this.options.expiry * 1000,
      );
      if (isNew) this.dependencies.announce(opened);
      const settled = opened.status === 'pending' ? await this.awaitSettlement(opened, request) : opened;
      const { id: caseId } = opened;
      if (settled === 'waiting') return request.context.clientRequests?.postpone?.() ?? this.late(caseId);
      if (settled === 'aborted') return { outcome: 'unavailable', reason: REASONS.aborted, caseId };
      if (settled === 'expired') return this.late(caseId);
      return await this.carryOut(settled, request);
    } catch (error) {
      if (error instanceof SharedStateUnavailable)
        return { outcome: 'unavailable', reason: REASONS.noSharedState };
      if (error instanceof ApprovalStoreFull) return TOO_MANY_PENDING;
      throw error;
    }
  }

  private async carryOut(
    { id: caseId, status, decision, holdsFor }: ApprovalCase,
    request: ApprovalRequest,
  ): Promise<ApprovalDecision> {
    if (!decision) return this.late(caseId);
    if (decision.withdrawn)
      return { outcome: 'unavailable', reason: `${REASONS.withdrawn}: ${decision.reason ?? ''}`, caseId };
    const by = { principal: decision.by, via: 'desk' as const };
    if (status === 'denied') {
      const reason = decision.reason === undefined ? '' : `: ${decision.reason}`;
      return { outcome: 'deny', reason: `${REASONS.denied}${reason}`, by, caseId };
    }
    // The approval is used up even if it no longer applies: the next call asks about the current change.
    if (!(await this.dependencies.store.use(caseId)))
      return { outcome: 'deny', reason: REASONS.used, caseId };
    if (!this.stillDecides(decision.agent)) return approverGone(caseId);
    const { holdsFor: now } = await request.preview();
    if (now !== holdsFor) return { outcome: 'deny', reason: REASONS.changed, caseId };
    const granted = request.context.clientRequests?.granted;
    granted?.keep(STORED_GRANT, holdsFor, decision.by);
    granted?.keep(STORED_CASE, holdsFor, caseId);
    if (decision.agent !== undefined) granted?.keep(STORED_AGENT, holdsFor, decision.agent);
    return { outcome: 'approve', by, caseId };
  }

  /** A decision counts while who made it may decide: an operator who suspends an approver ends what it approved. */
  private stillDecides(agent: string | undefined): boolean {
    return agent !== undefined && this.dependencies.mayDecide(agent);
  }

  private late(caseId: string): ApprovalDecision {
    return { outcome: 'unavailable', reason: describeTimeout(this.options.expiry), caseId };
  }

  /** The decided case, or why the call stops waiting. */
  private awaitSettlement(
    opened: ApprovalCase,
    { context }: ApprovalRequest,
  ): Promise<ApprovalCase | Waited> {
    const { store, bus } = this.dependencies;
    const { signal, clientRequests } = context;
    const left = Math.max(0, opened.expiresAt - steadyClock());
    const timeout = clientRequests?.postpone ? Math.min(this.options.timeout ?? 20_000, left) : left;
    const decided = bus.messages(APPROVAL_DECIDED).pipe(filter(({ id }) => id === opened.id));
    const looks = merge(decided, interval(LOOK_AGAIN), timer(0)).pipe(
      switchMap(() => store.find(opened.id)),
      map((found): ApprovalCase | Waited => found ?? 'expired'),
      filter((found) => found === 'expired' || (found as ApprovalCase).status !== 'pending'),
    );
    const ends: Observable<Waited> = timer(timeout).pipe(map(() => (timeout < left ? 'waiting' : 'expired')));
    const gone: Observable<Waited> = signal.aborted
      ? timer(0).pipe(map(() => 'aborted'))
      : fromEvent(signal, 'abort').pipe(map(() => 'aborted'));
    return firstValueFrom(merge(gone, looks, ends).pipe(first()));
  }
}

const approverGone = (caseId: string | undefined): ApprovalDecision => ({
  outcome: 'deny',
  reason: REASONS.approverGone,
  ...(caseId !== undefined && { caseId }),
});

function draftCase(
  { tool, args, context, effectivePermission, policyVersion }: ApprovalRequest,
  preview: ApprovalPreview,
  digest: Pick<ArgumentDigest, 'of'>,
) {
  const { agent, correlationId } = context;
  const requester = toOwner(agent);
  const { changeSet, classNames } = preview;
  return {
    requester,
    ...(agent.keyName !== null && { keyName: agent.keyName }),
    tool: tool.name,
    permission: effectivePermission,
    // What was decided on one set says nothing of the next one, which is submitted with the same words.
    subject: computeDigest({ requester, tool: tool.name, args, permission: effectivePermission, changeSet }),
    argsDigest: digest.of(tool.name, args),
    policyVersion,
    holdsFor: preview.holdsFor,
    // Rows of a set are read again for each approver, and kept sealed.
    preview: changeSet === undefined ? preview.shown : {},
    ...(preview.className !== undefined && { className: preview.className }),
    ...(preview.objectId !== undefined && { objectId: preview.objectId }),
    ...(changeSet !== undefined && { changeSet, classNames }),
    ...(correlationId !== undefined && { correlationId }),
  };
}

/** Requires the approval of all approvers, one after the other. The first other decision is final. */
export class ApproversInTurn extends Approver {
  constructor(private readonly approvers: readonly [Approver, ...Approver[]]) {
    super();
  }

  async review(request: ApprovalRequest): Promise<ApprovalDecision> {
    let decision: ApprovalDecision | undefined;
    for (const approver of this.approvers) {
      decision = await approver.review(request);
      if (decision.outcome !== 'approve') return decision;
    }
    return decision as ApprovalDecision;
  }
}
