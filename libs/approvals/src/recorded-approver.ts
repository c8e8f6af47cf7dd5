import type { EventEmitter2 } from '@nestjs/event-emitter';
import type { AuditSink } from '#audit';
import { type ApprovalDecision, type ApprovalRequest, Approver, ProtocolError } from '#dispatcher';

export interface ApprovalListeners {
  readonly events: Pick<EventEmitter2, 'emit'>;
  readonly audit: Pick<AuditSink, 'recordApproval'>;
  /** Logs failures of listeners. */
  readonly log: { error(line: string): void };
}

/** Emits an event for each decision and records it, unless the approval service has recorded it. */
export class RecordedApprover extends Approver {
  /** @param timeout seconds there are to decide, as a member of the event */
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
      // The protocol answers this error, and the call is denied. A question that is only now sent is no decision.
      if (error instanceof ProtocolError)
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
        agent_name: agent.definition.name,
        ...(agent.tenantId !== null && { tenant_id: agent.tenantId }),
      }),
    );
  }

  private safely(work: () => unknown): void {
    try {
      work();
    } catch (error) {
      this.listeners.log.error(`an approval listener failed: ${String(error)}`);
    }
  }
}
