import { Inject, Injectable, Logger } from '@nestjs/common';
import { IsIn, IsString, ValidateIf } from 'class-validator';
import { AuditSink, oneLine } from '#audit';
import { type Agent, isTier, Refused, type RequestContext, type Tier } from '#core';
import { type GovernedMethods, GovernedRecordsSource, GovernedWritesSource } from '#data';
import type { RecordsSource } from '#dispatcher';
import { type ApprovalCase, type ApprovalStore, type MessageBus, SharedState, steadyClock } from '#state';
import { DECIDED } from './approvers.js';

type Members = Readonly<Record<string, unknown>>;

/** A case as an approver sees it. */
export interface ApprovalView {
  readonly id: string;
  readonly status: ApprovalCase['status'];
  readonly tool: string;
  /** The class of the planned change; absent for a tool of an application that changes none of its own. */
  readonly class_name?: string;
  readonly permission: string;
  readonly requester: { readonly principal: string; readonly agent: string };
  /** Whether it is the viewer's own request, which another person has to decide. */
  readonly own: boolean;
  readonly requested_at: string;
  readonly expires_at: string;
  readonly decision?: {
    readonly decision: 'approve' | 'deny';
    readonly by: string;
    readonly reason?: string;
  };
}

export interface DetailedApprovalView extends ApprovalView {
  /** The planned change, as far as both requester and viewer may read it. */
  readonly preview: Members;
}

function summaryOf(known: ApprovalCase, viewer: Agent): ApprovalView {
  const { id, status, tool, permission, requester, decision } = known;
  return {
    id,
    status,
    tool,
    ...(known.className !== undefined && { class_name: known.className }),
    permission,
    requester: { principal: requester.principal, agent: requester.agent },
    own: requester.principal === viewer.principal,
    requested_at: new Date(known.requestedAt).toISOString(),
    expires_at: new Date(known.expiresAt).toISOString(),
    ...(decision && {
      decision: {
        decision: decision.approved ? ('approve' as const) : ('deny' as const),
        by: decision.by,
        ...(decision.reason !== undefined && { reason: decision.reason }),
      },
    }),
  };
}

const isObject = (value: unknown): value is Members =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Members of a change with values of a row. */
const ROWS = ['before', 'after'];
/** Arguments with values of a row. */
const WRITTEN = ['fields', 'data'];

/** Restricts values to those that the caller of a context may read. */
type Presenting = (context: RequestContext) => Pick<GovernedMethods, 'present'>;

/** Restricts a preview to what the viewer may read, so that approving reveals no more than reading. */
class CaseViews {
  constructor(
    private readonly records: RecordsSource,
    private readonly presenting: Presenting,
  ) {}

  async detailed(known: ApprovalCase, viewer: Agent, signal: AbortSignal): Promise<DetailedApprovalView> {
    return { ...summaryOf(known, viewer), preview: await this.previewFor(known, viewer, signal) };
  }

  private async previewFor(known: ApprovalCase, viewer: Agent, signal: AbortSignal): Promise<Members> {
    const { className, objectId, preview } = known;
    if (className === undefined) return preview;
    const context: RequestContext = { agent: viewer, signal, progress: () => undefined };
    const readable = await this.fieldsOf(className, objectId, context);
    if (!readable) return { tool: known.tool, preview_error: 'of a class or row that you may not read' };
    const narrow = new Narrowing(new Set(readable), (row) => this.presenting(context).present(row));
    return narrow.preview(preview, readsEverything(viewer));
  }

  private async fieldsOf(
    className: string,
    objectId: string | undefined,
    context: RequestContext,
  ): Promise<readonly string[] | null> {
    const records = this.records.for(context);
    try {
      const { fields } = await records.describe(className);
      if (objectId === undefined) return fields;
      const [row] = (await records.getMany(className, [objectId])).rows;
      return row ? fields : null;
    } catch (error) {
      if (error instanceof Refused) return null;
      throw error;
    }
  }
}

/** Whether this agent may read everything except what the policy hides from all agents. */
function readsEverything({ identity, definition }: Agent): boolean {
  return (
    identity.kind === 'master' &&
    !definition.clientMode &&
    !definition.classes.isActive &&
    definition.filters.size === 0
  );
}

class Narrowing {
  private readonly withheld = new Set<string>();

  constructor(
    private readonly readable: ReadonlySet<string>,
    /** Removes pointers to classes that the viewer may not know. */
    private readonly present: (row: Members) => Promise<unknown>,
  ) {}

  /** @param whole whether the viewer may see the result of a method, whose fields have no known origin */
  async preview(preview: Members, whole: boolean): Promise<Members> {
    const { change, args, result, ...others } = preview;
    const shown = {
      ...others,
      ...(args !== undefined && { args: await this.members(args, WRITTEN) }),
      ...(change !== undefined && { change: await this.members(change, ROWS) }),
      ...(result !== undefined && whole && { result }),
    };
    if (result !== undefined && !whole) this.withheld.add('result');
    return this.withheld.size === 0 ? shown : { ...shown, withheld_from_you: [...this.withheld].sort() };
  }

  private async members(held: unknown, rows: readonly string[]): Promise<unknown> {
    if (!isObject(held)) return held;
    const narrowed = Object.entries(held).map(async ([name, value]) => [
      name,
      rows.includes(name) ? await this.row(value) : value,
    ]);
    return Object.fromEntries(await Promise.all(narrowed)) as Members;
  }

  private async row(row: unknown): Promise<unknown> {
    if (!isObject(row)) return row;
    const kept = Object.entries(row).filter(
      ([name]) => this.readable.has(name) || (this.withheld.add(name), false),
    );
    return this.present(Object.fromEntries(kept));
  }
}

/** Token of the options that `ApprovalService` needs. */
export const APPROVAL_OPTIONS = Symbol('options of approvals');

/** Why an approver was refused; `forbidden` reveals nothing of existing cases. */
export type ApprovalServiceRefusal = 'forbidden' | 'not_found' | 'own_request' | 'decided_before';
export type ApprovalServiceResult<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: ApprovalServiceRefusal };

export interface Verdict {
  readonly approved: boolean;
  /** Returned to the agent; cut to 500 characters. */
  readonly reason?: string;
}

const MAX_REASON = 500;

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
    @Inject(APPROVAL_OPTIONS) private readonly options: { readonly approvers: readonly string[] },
  ) {
    this.store = approvals;
    this.bus = bus;
    // Restricts values that were read for another agent.
    this.views = new CaseViews(records, (context) =>
      writes.methods(context, { tool: 'approvals', timeout: 10 }),
    );
  }

  /** @throws SharedStateUnavailable */
  async list(viewer: Agent): Promise<ApprovalServiceResult<readonly ApprovalView[]>> {
    if (!this.admits(viewer)) return { ok: false, refusal: 'forbidden' };
    const pending = await this.store.pending(viewer.tenantId);
    return { ok: true, value: pending.map((one) => summaryOf(one, viewer)) };
  }

  /** @throws SharedStateUnavailable */
  async show(
    id: string,
    viewer: Agent,
    signal: AbortSignal,
  ): Promise<ApprovalServiceResult<DetailedApprovalView>> {
    const found = await this.caseFor(id, viewer);
    if (!found.ok) return found;
    return { ok: true, value: await this.views.detailed(found.value, viewer, signal) };
  }

  /** @throws SharedStateUnavailable */
  async decide(id: string, viewer: Agent, verdict: Verdict): Promise<ApprovalServiceResult<ApprovalView>> {
    const found = await this.caseFor(id, viewer);
    if (!found.ok) return found;
    const { value: known } = found;
    if (known.requester.principal === viewer.principal) return { ok: false, refusal: 'own_request' };
    const { approved } = verdict;
    const reason = verdict.reason === undefined ? undefined : oneLine(verdict.reason).slice(0, MAX_REASON);
    const decision = { approved, by: viewer.principal, at: Date.now(), ...(reason && { reason }) };
    const outcome = await this.store.decide(id, decision);
    if (outcome !== 'decided') return { ok: false, refusal: outcome === 'unknown' ? 'not_found' : outcome };
    this.record(known, viewer, approved, reason);
    // A call that misses the message polls the case.
    await this.bus.publish(DECIDED, { id }).catch(() => undefined);
    const status = approved ? ('approved' as const) : ('denied' as const);
    return { ok: true, value: summaryOf({ ...known, status, decision }, viewer) };
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
    if (!known || known.requester.tenant !== viewer.tenantId) return { ok: false, refusal: 'not_found' };
    return { ok: true, value: known };
  }

  private record(known: ApprovalCase, viewer: Agent, approved: boolean, reason: string | undefined): void {
    const { requester } = known;
    try {
      this.audit.recordApproval({
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
        duration_ms: Math.max(0, Math.round(steadyClock() - known.requestedAt)),
      });
    } catch (error) {
      this.logger.warn(`an approval could not be recorded: ${String(error)}`);
    }
  }
}

/** Stored by Parley; any other value counts as the highest tier. */
function tierOf(text: string): Tier {
  return isTier(text) ? text : 'admin';
}

/** The body of a request that decides an approval. */
export class DecisionBody {
  @IsIn(['approve', 'deny'], { message: 'decision must be approve or deny' })
  decision!: 'approve' | 'deny';

  @ValidateIf(({ reason }: DecisionBody) => reason !== undefined)
  @IsString({ message: 'reason must be text' })
  reason?: string;
}

export const verdictOf = ({ decision, reason }: DecisionBody): Verdict => ({
  approved: decision === 'approve',
  ...(reason !== undefined && { reason }),
});

const REFUSED: Readonly<
  Record<Exclude<ApprovalServiceRefusal, 'forbidden'>, readonly [status: number, error: string]>
> = {
  own_request: [403, "one's own request is decided by somebody else"],
  not_found: [404, 'no such approval'],
  decided_before: [409, 'this approval has been decided'],
};

/** @param who as the text calls the caller. @returns the HTTP status and the text of a refusal */
export function decisionRefused(
  refusal: ApprovalServiceRefusal,
  who: 'agent' | 'operator',
): readonly [status: number, error: string] {
  return refusal === 'forbidden' ? [403, `this ${who} may not decide approvals`] : REFUSED[refusal];
}
