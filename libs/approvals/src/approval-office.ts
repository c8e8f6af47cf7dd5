import { type Agent, isTier, type Tier } from '#agent';
import { type AuditSink, oneLine } from '#audit';
import type { ApprovalCase, ApprovalDesk, MessageBus } from '#cluster';
import type { RecordsSource } from '#dispatcher';
import {
  type ApprovalView,
  CaseViews,
  type DetailedApprovalView,
  type Presenting,
  summaryOf,
} from './case-view.js';
import { DECIDED } from './desk-approver.js';

/** Why an approver was not served; `forbidden` also says nothing of what there is. */
export type OfficeRefusal = 'forbidden' | 'not_found' | 'own_request' | 'decided_before';
export type Answered<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: OfficeRefusal };

export interface OfficeParts {
  readonly desk: ApprovalDesk;
  readonly bus: MessageBus;
  readonly records: RecordsSource;
  /** What a viewer may be shown of values that were read for somebody else. */
  readonly presenting: Presenting;
  readonly audit: Pick<AuditSink, 'recordApproval'>;
  /** Names of the agents that may decide. */
  readonly approvers: readonly string[];
  readonly log: { warn(line: string): void };
}

export interface Verdict {
  readonly approved: boolean;
  /** Told to the agent; cut to 500 characters. */
  readonly reason?: string;
}

const MAX_REASON = 500;

/**
 * Where approvers see cases and decide them: those of their own tenant, and never their own. A sub-agent's request is its
 * root's, because they have one principal.
 */
export class ApprovalOffice {
  private readonly views: CaseViews;

  constructor(private readonly parts: OfficeParts) {
    this.views = new CaseViews(parts.records, parts.presenting);
  }

  /** @throws SharedStateUnavailable */
  async list(viewer: Agent): Promise<Answered<readonly ApprovalView[]>> {
    if (!this.admits(viewer)) return { ok: false, refusal: 'forbidden' };
    const pending = await this.parts.desk.pending(viewer.tenantId);
    return { ok: true, value: pending.map((one) => summaryOf(one, viewer)) };
  }

  /** @throws SharedStateUnavailable */
  async show(id: string, viewer: Agent, signal: AbortSignal): Promise<Answered<DetailedApprovalView>> {
    const found = await this.caseFor(id, viewer);
    if (!found.ok) return found;
    return { ok: true, value: await this.views.detailed(found.value, viewer, signal) };
  }

  /** @throws SharedStateUnavailable */
  async decide(id: string, viewer: Agent, verdict: Verdict): Promise<Answered<ApprovalView>> {
    const found = await this.caseFor(id, viewer);
    if (!found.ok) return found;
    const { value: known } = found;
    if (known.requester.principal === viewer.principal) return { ok: false, refusal: 'own_request' };
    const { approved } = verdict;
    const reason = verdict.reason === undefined ? undefined : oneLine(verdict.reason).slice(0, MAX_REASON);
    const decision = { approved, by: viewer.principal, at: Date.now(), ...(reason && { reason }) };
    const outcome = await this.parts.desk.decide(id, decision);
    if (outcome !== 'decided') return { ok: false, refusal: outcome === 'unknown' ? 'not_found' : outcome };
    this.record(known, viewer, approved, reason);
    // A call that does not hear of it looks for itself.
    await this.parts.bus.publish(DECIDED, { id }).catch(() => undefined);
    const status = approved ? ('approved' as const) : ('denied' as const);
    return { ok: true, value: summaryOf({ ...known, status, decision }, viewer) };
  }

  /** Whether an agent of this shape may decide. */
  isStaffedBy({ name }: Agent['shape']): boolean {
    return this.parts.approvers.includes(name);
  }

  private admits({ shape, depth }: Agent): boolean {
    return depth === 0 && this.isStaffedBy(shape);
  }

  /** Of another tenant is as good as none. */
  private async caseFor(id: string, viewer: Agent): Promise<Answered<ApprovalCase>> {
    if (!this.admits(viewer)) return { ok: false, refusal: 'forbidden' };
    const known = await this.parts.desk.find(id);
    if (!known || known.requester.tenant !== viewer.tenantId) return { ok: false, refusal: 'not_found' };
    return { ok: true, value: known };
  }

  private record(known: ApprovalCase, viewer: Agent, approved: boolean, reason: string | undefined): void {
    const { requester } = known;
    try {
      this.parts.audit.recordApproval({
        at: new Date().toISOString(),
        tool: known.tool,
        effective_permission: tierOf(known.permission),
        outcome: approved ? 'approve' : 'deny',
        ...(reason && { reason }),
        approver: viewer.principal,
        via: 'desk',
        approval_id: known.id,
        principal: requester.principal,
        agent_name: requester.agent,
        ...(requester.tenant !== null && { tenant_id: requester.tenant }),
        ...(known.correlationId !== undefined && { correlation_id: known.correlationId }),
        duration_ms: Date.now() - known.requestedAt,
      });
    } catch (error) {
      this.parts.log.warn(`a sink of approvals failed: ${String(error)}`);
    }
  }
}

/** What is stored was written by us; anything else counts as the tier that can do most. */
function tierOf(text: string): Tier {
  return isTier(text) ? text : 'admin';
}
