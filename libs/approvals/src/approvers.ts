import {
  Observable,
  filter,
  first,
  firstValueFrom,
  fromEvent,
  interval,
  map,
  merge,
  switchMap,
  timer,
} from 'rxjs';
import {
  type ApprovalCase,
  type ApprovalDesk,
  ApprovalDeskFull,
  type MessageBus,
  SharedStateUnavailable,
  steadyClock,
} from '#cluster';
import {
  type ApprovalDecision,
  type ApprovalPreview,
  type ApprovalRequest,
  Approver,
  digestOf,
} from '#dispatcher';
import { REASONS, timedOut } from './decision-texts.js';

/** Where replicas tell each other that a case was decided. */
export const DECIDED = 'approval-decided';

export interface DeskApproverOptions {
  /** Seconds until a case expires. */
  readonly expiry: number;
  /** Milliseconds that a call of the stateless era waits before its client is told to ask again. Default 20,000. */
  readonly patience?: number;
}

export interface DeskApproverParts {
  readonly desk: ApprovalDesk;
  readonly bus: MessageBus;
  /** Hears of every case that is opened. */
  readonly announce: (opened: ApprovalCase) => void;
}

/** What a call that goes on asking remembers the decision by. */
const GRANT = 'approval.desk';

type Waited = 'waiting' | 'aborted' | 'expired';

/** Milliseconds between two looks at the desk, should the word of a decision have been lost on its way. */
const LOOK_AGAIN = 5_000;

/**
 * Puts a call before another person and lets it wait. The case outlives the call: the same call, made again, finds it, and
 * an approval is used by one call.
 */
export class DeskApprover extends Approver {
  constructor(
    private readonly parts: DeskApproverParts,
    private readonly options: DeskApproverOptions,
  ) {
    super();
  }

  async review(request: ApprovalRequest): Promise<ApprovalDecision> {
    try {
      const preview = await request.preview();
      const by = await request.context.asks?.granted?.recall(GRANT, preview.holdsFor);
      if (by !== undefined) return { outcome: 'approve', by: { principal: by, via: 'desk' }, again: true };
      const { opened, isNew } = await this.parts.desk.open(
        draftOf(request, preview),
        this.options.expiry * 1000,
      );
      if (isNew) this.parts.announce(opened);
      const settled = opened.status === 'pending' ? await this.settled(opened, request) : opened;
      if (settled === 'waiting') return request.context.asks?.postpone?.() ?? this.late();
      if (settled === 'aborted') return { outcome: 'unavailable', reason: REASONS.aborted };
      if (settled === 'expired') return this.late();
      return await this.carriedOut(settled, request);
    } catch (error) {
      if (error instanceof SharedStateUnavailable)
        return { outcome: 'unavailable', reason: REASONS.noSharedState };
      if (error instanceof ApprovalDeskFull) return { outcome: 'unavailable', reason: REASONS.tooMany };
      throw error;
    }
  }

  private async carriedOut(
    { id, status, decision, holdsFor }: ApprovalCase,
    request: ApprovalRequest,
  ): Promise<ApprovalDecision> {
    if (!decision) return this.late();
    const by = { principal: decision.by, via: 'desk' as const };
    if (status === 'denied') {
      const reason = decision.reason === undefined ? '' : `: ${decision.reason}`;
      return { outcome: 'deny', reason: `${REASONS.rejected}${reason}`, by };
    }
    // Used up even when it is of no use any more: the next call asks about what there is now.
    if (!(await this.parts.desk.use(id))) return { outcome: 'deny', reason: REASONS.used };
    const { holdsFor: now } = await request.preview();
    if (now !== holdsFor) return { outcome: 'deny', reason: REASONS.changed };
    request.context.asks?.granted?.keep(GRANT, holdsFor, decision.by);
    return { outcome: 'approve', by };
  }

  private late(): ApprovalDecision {
    return { outcome: 'unavailable', reason: timedOut(this.options.expiry) };
  }

  /** The case once it is decided, or why nobody waits for it any longer. */
  private settled(opened: ApprovalCase, { context }: ApprovalRequest): Promise<ApprovalCase | Waited> {
    const { desk, bus } = this.parts;
    const { signal, asks } = context;
    const left = Math.max(0, opened.expiresAt - steadyClock());
    const patience = asks?.postpone ? Math.min(this.options.patience ?? 20_000, left) : left;
    const told = bus.messages(DECIDED).pipe(filter(({ id }) => id === opened.id));
    const looks = merge(told, interval(LOOK_AGAIN), timer(0)).pipe(
      switchMap(() => desk.find(opened.id)),
      map((found): ApprovalCase | Waited => found ?? 'expired'),
      filter((found) => found === 'expired' || (found as ApprovalCase).status !== 'pending'),
    );
    const ends: Observable<Waited> = timer(patience).pipe(
      map(() => (patience < left ? 'waiting' : 'expired')),
    );
    const gone: Observable<Waited> = signal.aborted
      ? timer(0).pipe(map(() => 'aborted'))
      : fromEvent(signal, 'abort').pipe(map(() => 'aborted'));
    return firstValueFrom(merge(gone, looks, ends).pipe(first()));
  }
}

function draftOf({ tool, args, context, effectivePermission }: ApprovalRequest, preview: ApprovalPreview) {
  const { agent, correlationId } = context;
  const requester = { principal: agent.principal, agent: agent.shape.name, tenant: agent.tenantId };
  return {
    requester,
    tool: tool.name,
    permission: effectivePermission,
    subject: digestOf({ requester, tool: tool.name, args, permission: effectivePermission }),
    holdsFor: preview.holdsFor,
    preview: preview.shown,
    ...(preview.className !== undefined && { className: preview.className }),
    ...(preview.objectId !== undefined && { objectId: preview.objectId }),
    ...(correlationId !== undefined && { correlationId }),
  };
}
