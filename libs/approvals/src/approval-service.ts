import { Inject, Injectable, Logger } from '@nestjs/common';
import { IsIn, IsString, ValidateIf } from 'class-validator';
import { ArgumentDigest, AuditSink, oneLine } from '#audit';
import { cutText, type Agent, isTier, sharesTenant, type Tier } from '#core';
import { GovernedChangesSource, GovernedRecordsSource, GovernedWritesSource } from '#data';
import {
  APPROVAL_DECIDED,
  type ApprovalCase,
  type ApprovalStore,
  type CaseDecision,
  MAX_LISTED,
  type MessageBus,
  readPending,
  SharedState,
  SharedStateUnavailable,
  steadyClock,
} from '#state';
import { Changes } from '#tools';
import {
  type ApprovalView,
  CaseViews,
  type DetailedApprovalView,
  summarizeApproval,
} from './approval-views.js';

/** Token of the options that `ApprovalService` needs. */
export const APPROVAL_OPTIONS = Symbol('options of approvals');

/** Why an approver was refused; `forbidden` reveals nothing of existing cases. */
export type ApprovalServiceRefusal =
  | 'forbidden'
  | 'not_found'
  | 'own_request'
  | 'decided_before'
  | 'shown_otherwise'
  | 'unreadable'
  /** The decision may count: the shared state did not confirm it. */
  | 'unconfirmed';
export type ApprovalServiceResult<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: ApprovalServiceRefusal };

/** The answer to a request for the pending cases. */
export interface ListedApprovals {
  readonly approvals: readonly ApprovalView[];
  /** There are others. Absent: these are all. */
  readonly more?: true;
}

export interface Verdict {
  readonly approved: boolean;
  /** Of the view that the approver decides on: `DetailedApprovalView.digest`. */
  readonly digest: string;
  /** Returned to the agent; cut to 500 characters. */
  readonly reason?: string;
}

const MAX_REASON = 500;

/** Cases among which those that are listed are chosen. */
const MAX_SEEN = 5_000;

/** Reading for an approver. */
const BUDGET = { tool: 'approvals', timeout: 10 };

/**
 * Shows cases to approvers and takes their decisions. Approvers see cases of their own tenant and cannot decide their
 * own. A sub-agent's request counts as its root's, because they share a principal.
 */
@Injectable()
export class ApprovalService {
  private readonly views: CaseViews;
  private readonly store: ApprovalStore;
  private readonly bus: MessageBus;
  private readonly logger = new Logger(ApprovalService.name);

  /** @param options `approvers` are names of the agents that may decide */
  constructor(
    records: GovernedRecordsSource,
    writes: GovernedWritesSource,
    { approvals, bus }: SharedState,
    @Inject(AuditSink) private readonly audit: Pick<AuditSink, 'recordApproval'>,
    @Inject(ArgumentDigest) private readonly digest: Pick<ArgumentDigest, 'nameObject'>,
    @Inject(APPROVAL_OPTIONS) private readonly options: { readonly approvers: readonly string[] },
    @Inject(Changes) changes: Pick<Changes, 'showTo'>,
    rows: GovernedChangesSource,
  ) {
    this.store = approvals;
    this.bus = bus;
    // Restricts values that were read for another agent.
    this.views = new CaseViews(
      records,
      {
        methods: (context) => writes.methods(context, BUDGET),
        changes: async (context) => (await rows.open(context, BUDGET)).views,
      },
      changes,
    );
  }

  /**
   * The first `MAX_LISTED` that the viewer may see, of each requester in turn, so that nobody's cases hide those of others.
   * @param changeSet only the cases about this set. @throws SharedStateUnavailable
   */
  async list(viewer: Agent, changeSet?: string): Promise<ApprovalServiceResult<ListedApprovals>> {
    if (!this.admits(viewer)) return { ok: false, refusal: 'forbidden' };
    const seen: ApprovalCase[] = [];
    for await (const one of readPending(this.store, viewer.tenantId)) {
      if (isOfTenant(one, viewer) && (changeSet ?? one.changeSet) === one.changeSet) seen.push(one);
      if (seen.length === MAX_SEEN) break;
    }
    const listed = takeInTurn(seen, MAX_LISTED);
    const approvals = listed.map((one) => summarizeApproval(one, viewer));
    return { ok: true, value: { approvals, ...(listed.length < seen.length && { more: true as const }) } };
  }

  /** @throws SharedStateUnavailable */
  async show(
    id: string,
    viewer: Agent,
    signal: AbortSignal,
  ): Promise<ApprovalServiceResult<DetailedApprovalView>> {
    const found = await this.caseFor(id, viewer);
    if (!found.ok) return found;
    const { preview, digest } = await this.views.showCase(found.value, viewer, signal);
    return { ok: true, value: { ...summarizeApproval(found.value, viewer), preview, digest } };
  }

  /**
   * Takes a decision on what the approver was shown: it counts only while the same would be shown again.
   * @throws SharedStateUnavailable
   */
  async decide(
    id: string,
    viewer: Agent,
    verdict: Verdict,
    signal: AbortSignal,
  ): Promise<ApprovalServiceResult<ApprovalView>> {
    const found = await this.caseFor(id, viewer);
    if (!found.ok) return found;
    const { value: known } = found;
    if (known.requester.principal === viewer.principal) return { ok: false, refusal: 'own_request' };
    if (known.status !== 'pending') return repeatDecision(known, viewer, verdict);
    const { approved } = verdict;
    const now = await this.views.showCase(known, viewer, signal);
    if (now.digest !== verdict.digest) return { ok: false, refusal: 'shown_otherwise' };
    if (approved && !now.isReadable) return { ok: false, refusal: 'unreadable' };
    const reason = verdict.reason === undefined ? undefined : cutText(oneLine(verdict.reason), MAX_REASON);
    const decision = {
      approved,
      by: viewer.principal,
      agent: viewer.definition.name,
      at: Date.now(),
      ...(reason && { reason }),
    };
    const outcome = await this.decideOrRecord(known, viewer, decision);
    if (outcome === 'unconfirmed') return { ok: false, refusal: 'unconfirmed' };
    if (outcome === 'unknown') return { ok: false, refusal: 'not_found' };
    if (outcome === 'decided_before') {
      const again = await this.caseFor(id, viewer);
      return again.ok ? repeatDecision(again.value, viewer, verdict) : again;
    }
    this.record(known, viewer, decision);
    // A call that misses the message polls the case.
    await this.bus.publish(APPROVAL_DECIDED, { id }).catch(() => undefined);
    const status = approved ? ('approved' as const) : ('denied' as const);
    return { ok: true, value: summarizeApproval({ ...known, status, decision }, viewer) };
  }

  /** Whether agents of this definition may decide. */
  isStaffedBy({ name }: Agent['definition']): boolean {
    return this.options.approvers.includes(name);
  }

  private admits({ definition, depth }: Agent): boolean {
    return depth === 0 && this.isStaffedBy(definition);
  }

  /** A case of another tenant counts as unknown. */
  private async caseFor(id: string, viewer: Agent): Promise<ApprovalServiceResult<ApprovalCase>> {
    if (!this.admits(viewer)) return { ok: false, refusal: 'forbidden' };
    const known = await this.store.find(id);
    if (!known || !isOfTenant(known, viewer)) return { ok: false, refusal: 'not_found' };
    return { ok: true, value: known };
  }

  /** A decision whose answer is lost may count, and its call may run: it leaves its record all the same. */
  private async decideOrRecord(known: ApprovalCase, viewer: Agent, decision: CaseDecision) {
    try {
      return await this.store.decide(known.id, decision);
    } catch (error) {
      if (!(error instanceof SharedStateUnavailable)) throw error;
      this.record(known, viewer, decision, true);
      return 'unconfirmed';
    }
  }

  private record(
    known: ApprovalCase,
    viewer: Agent,
    { approved, reason }: CaseDecision,
    isUnconfirmed = false,
  ): void {
    const { requester } = known;
    try {
      this.audit.recordApproval({
        at: new Date().toISOString(),
        tool: known.tool,
        ...(known.className !== undefined && { class_name: known.className }),
        ...this.digest.nameObject(known.className, known.objectId),
        ...(known.argsDigest !== undefined && { args_digest: known.argsDigest }),
        ...(known.policyVersion !== undefined && { policy_version: known.policyVersion }),
        effective_permission: toTier(known.permission),
        outcome: approved ? 'approve' : 'deny',
        ...(reason && { reason }),
        ...(isUnconfirmed && { unconfirmed: true as const }),
        approver: viewer.principal,
        ...(viewer.keyName !== null && { approver_key: viewer.keyName }),
        via: 'desk',
        approval_id: known.id,
        principal: requester.principal,
        agent_name: requester.agent,
        ...(known.keyName !== undefined && { key_name: known.keyName }),
        ...(requester.tenant !== null && { tenant_id: requester.tenant }),
        ...(known.correlationId !== undefined && { correlation_id: known.correlationId }),
        duration_ms: Math.max(0, Math.round(steadyClock() - known.requestedAt)),
      });
    } catch (error) {
      this.logger.warn(`an approval could not be recorded: ${String(error)}`);
    }
  }
}

/** So many of the cases, in their order: the first of each requester, then the second ones, and so on. */
function takeInTurn(cases: readonly ApprovalCase[], limit: number): readonly ApprovalCase[] {
  const counts = new Map<string, number>();
  const turns = cases.map((one) => {
    const turn = counts.get(one.requester.principal) ?? 0;
    counts.set(one.requester.principal, turn + 1);
    return { one, turn };
  });
  const taken = new Set(
    turns
      .toSorted((a, b) => a.turn - b.turn)
      .slice(0, limit)
      .map(({ one }) => one),
  );
  return cases.filter((one) => taken.has(one));
}

const isOfTenant = ({ requester, className, classNames }: ApprovalCase, viewer: Agent): boolean =>
  sharesTenant(viewer, requester, classNames ?? (className === undefined ? [] : [className]));

/** Who decided the same before did so now: the answer to the first request may have been lost. */
function repeatDecision(
  known: ApprovalCase,
  viewer: Agent,
  { approved }: Verdict,
): ApprovalServiceResult<ApprovalView> {
  const { decision } = known;
  if (!decision || decision.by !== viewer.principal || decision.approved !== approved)
    return { ok: false, refusal: 'decided_before' };
  return { ok: true, value: summarizeApproval(known, viewer) };
}

/** Stored by Parley; any other value counts as the highest tier. */
function toTier(text: string): Tier {
  return isTier(text) ? text : 'admin';
}

/** The parameters of the list of approvals. */
export class ApprovalsQuery {
  @ValidateIf(({ change_set }: ApprovalsQuery) => change_set !== undefined)
  @IsString({ message: 'change_set must be the id of one change set' })
  change_set?: string;
}

/** The body of a request that decides an approval. */
export class DecisionBody {
  @IsIn(['approve', 'deny'], { message: 'decision must be approve or deny' })
  decision!: 'approve' | 'deny';

  @IsString({ message: 'digest must be the one that came with the preview of this approval' })
  digest!: string;

  @ValidateIf(({ reason }: DecisionBody) => reason !== undefined)
  @IsString({ message: 'reason must be text' })
  reason?: string;
}

export const toVerdict = ({ decision, digest, reason }: DecisionBody): Verdict => ({
  approved: decision === 'approve',
  digest,
  ...(reason !== undefined && { reason }),
});

type DecisionRefused = readonly [status: number, error: string, headers?: { readonly 'Retry-After': string }];

const REFUSAL_TEXTS: Readonly<Record<Exclude<ApprovalServiceRefusal, 'forbidden'>, DecisionRefused>> = {
  own_request: [403, "one's own request is decided by somebody else"],
  not_found: [404, 'no such approval'],
  decided_before: [409, 'this approval has been decided'],
  shown_otherwise: [
    412,
    'this digest is not of what would change now: read the approval again, and decide with its digest',
  ],
  unconfirmed: [
    503,
    'the decision may count, which the shared state did not confirm: send the same decision again',
    { 'Retry-After': '5' },
  ],
  unreadable: [
    403,
    'what this call would change cannot be shown to this agent: another approver has to approve it',
  ],
};

/** @param who as the text calls the caller. @returns the HTTP status, the text and the headers of a refusal */
export function decisionRefused(refusal: ApprovalServiceRefusal, who: 'agent' | 'operator'): DecisionRefused {
  return refusal === 'forbidden' ? [403, `this ${who} may not decide approvals`] : REFUSAL_TEXTS[refusal];
}
