import type { AuditSink } from '#audit';
import type { Operator } from './operator-gate.js';

/** What operators do is recorded like what agents do. */
export class OperatorNotes {
  constructor(
    private readonly audit: Pick<AuditSink, 'recordEvent'>,
    private readonly log: { error(line: string): void },
  ) {}

  /** A record that fails changes nothing of what was done. */
  write({ agent }: Pick<Operator, 'agent'>, action: string, target?: string): void {
    try {
      this.audit.recordEvent({
        type: 'operator_action',
        at: new Date().toISOString(),
        success: true,
        action,
        ...(target !== undefined && { target: target.slice(0, 200) }),
        principal: agent.principal,
        agent_name: agent.shape.name,
        ...(agent.tenantId !== null && { tenant_id: agent.tenantId }),
      });
    } catch (error) {
      this.log.error(`an operator's action was not recorded: ${String(error)}`);
    }
  }
}
