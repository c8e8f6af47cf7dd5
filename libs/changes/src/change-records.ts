import { Inject, Injectable } from '@nestjs/common';
import { AuditSink, type ChangeSetEvent } from '#audit';
import { type McpRequest } from '#core';
import { CHANGED_SETS, type ChangeSet } from '#data';
import { SharedState } from '#state';
import { listClasses } from './change-seal.js';

type Steps = Pick<ChangeSetEvent, 'approver' | 'approval_id'> & {
  /** Rows that the step is about. Default: those of the set. */
  readonly rows?: number;
};

/** Writes every step of a set to the audit, and tells who watches the set. */
@Injectable()
export class ChangeRecords {
  constructor(
    @Inject(AuditSink) private readonly audit: Pick<AuditSink, 'recordEvent'>,
    @Inject(SharedState) private readonly shared: Pick<SharedState, 'bus'>,
  ) {}

  record(
    set: Pick<ChangeSet, 'id' | 'kind' | 'owner' | 'entries' | 'undoes'>,
    step: ChangeSetEvent['step'],
    request: Pick<McpRequest, 'agent' | 'correlationId' | 'httpRequestId'> | null,
    { rows = set.entries.length, ...others }: Steps = {},
  ): void {
    const { id, kind, owner, undoes } = set;
    const { agent, correlationId, httpRequestId } = request ?? {};
    this.audit.recordEvent({
      type: 'change_set',
      at: new Date().toISOString(),
      success: step !== 'conflict',
      change_set: id,
      step,
      kind,
      rows,
      classes: listClasses(set),
      principal: owner.principal,
      agent_name: owner.agent,
      ...(owner.tenant !== null && { tenant_id: owner.tenant }),
      ...(agent?.keyName != null && { key_name: agent.keyName }),
      ...(correlationId !== undefined && { correlation_id: correlationId }),
      ...(httpRequestId !== undefined && { request_id: httpRequestId }),
      ...(undoes !== undefined && { undoes }),
      ...others,
    });
    // What an undo takes back is marked with it.
    for (const changed of step === 'undone' ? [id, ...(undoes ?? [])] : [id]) {
      // Without the shared state no subscriber is notified.
      this.shared.bus.publish(CHANGED_SETS, { set: changed }).catch(() => undefined);
    }
  }
}
