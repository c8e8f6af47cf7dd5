import type { EventEmitter2 } from '@nestjs/event-emitter';
import type { AuditSink } from '#audit';
import { type ApprovalDecision, type ApprovalRequest, Approver, ProtocolFault } from '#dispatcher';

export interface ApprovalListeners {
  readonly events: Pick<EventEmitter2, 'emit'>;
  readonly audit: Pick<AuditSink, 'recordApproval'>;
  /** Hears of listeners that fail. */
  readonly log: { error(line: string): void };
}

/** What an approver decides is told: to whoever listens for the event, and to the record unless the desk wrote it down. */
export class RecordedApprover extends Approver {
  /** @param timeout seconds there are to decide, as the event tells them */
  constructor(
    private readonly approver: Approver,
    private readonly timeout: number,
    private readonly listeners: ApprovalListeners,
  ) {
    super();
  }

  async review(request: ApprovalRequest): Promise<ApprovalDecision> {
    const started = performance.now();
    try {
      const decision = await this.approver.review(request);
      if (!decision.again) this.record(request, decision, performance.now() - started);
      return decision;
    } catch (error) {
      // Answered by the protocol, and a no all the same. A question that is only now asked is none.
      if (error instanceof ProtocolFault)
        this.record(request, { outcome: 'unavailable', reason: error.message }, performance.now() - started);
      throw error;
    }
  }

  private record(request: ApprovalRequest, decision: ApprovalDecision, waited: number): void {
    const { tool, context, effectivePermission } = request;
    const { events, audit } = this.listeners;
    const duration_ms = Math.round(waited * 100) / 100;
    const entry = {
      tool: tool.name,
      effective_permission: effectivePermission,
      ...(context.correlationId !== undefined && { correlation_id: context.correlationId }),
      outcome: decision.outcome,
      ...(decision.outcome !== 'approve' && { reason: decision.reason }),
      duration_ms,
    };
    this.safely(() => events.emit('parse.agent.approval', { ...entry, timeout: this.timeout }));
    if (decision.by?.via === 'desk') return;
    const { agent } = context;
    this.safely(() =>
      audit.recordApproval({
        at: new Date().toISOString(),
        ...entry,
        ...(decision.by && { approver: decision.by.principal, via: decision.by.via }),
        principal: agent.principal,
        agent_name: agent.shape.name,
        ...(agent.tenantId !== null && { tenant_id: agent.tenantId }),
      }),
    );
  }

  private safely(work: () => unknown): void {
    try {
      work();
    } catch (error) {
      this.listeners.log.error(`a listener to approvals failed: ${String(error)}`);
    }
  }
}
