import { Logger, type Provider } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { Refused } from '#agent';
import {
  ApprovalOffice,
  ApprovalWebhook,
  ApproversInTurn,
  ClientApprover,
  DeskApprover,
  RecordedApprover,
} from '#approvals';
import { AuditSink } from '#audit';
import type { SharedState } from '#cluster';
import { GovernedWritesSource } from '#data';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  Approver,
  ProtocolFault,
  RecordsSource,
} from '#dispatcher';
import type { ApprovalsConfig, ParleyConfig } from '#config';

/** Ends with the application. */
class Announcements {
  private readonly webhook: ApprovalWebhook | null;

  constructor({ webhook }: ApprovalsConfig) {
    this.webhook = webhook && new ApprovalWebhook({ ...webhook, log: new Logger(ApprovalWebhook.name) });
  }

  readonly announce = (opened: Parameters<ApprovalWebhook['announce']>[0]) => this.webhook?.announce(opened);

  async onModuleDestroy(): Promise<void> {
    await this.webhook?.close();
  }
}

function createApprover(
  { server, approvals }: ParleyConfig,
  { approvals: desk, bus }: SharedState,
  { announce }: Announcements,
): Approver {
  const client = new ClientApprover(server.approvalTimeout);
  const another = new DeskApprover({ desk, bus, announce }, { expiry: approvals.expiry });
  switch (approvals.mode) {
    case 'client':
      return client;
    case 'desk':
      return another;
    case 'both':
      return new ApproversInTurn([client, another]);
  }
}

const OUTCOMES: readonly unknown[] = ['approve', 'deny', 'unavailable'];
const UNDECIDED: ApprovalDecision = { outcome: 'unavailable', reason: 'nobody could decide' };

/** Asks code of the application. A fault of it is a no, and so is an answer that is none. */
class BoundApprover extends Approver {
  private readonly logger = new Logger('Approvals');

  constructor(private readonly bound: Approver) {
    super();
  }

  async review(request: ApprovalRequest): Promise<ApprovalDecision> {
    try {
      const decision = (await this.bound.review(request)) as ApprovalDecision | undefined;
      if (decision && OUTCOMES.includes(decision.outcome)) return decision;
      this.logger.error('the bound Approver answered with no decision');
    } catch (error) {
      if (error instanceof ProtocolFault || error instanceof Refused) throw error;
      this.logger.error(`the bound Approver failed: ${String(error)}`);
    }
    return UNDECIDED;
  }
}

/** An application's own approver; what it decides is written down like any other decision. */
export function approvedBy(bound: Approver, { server }: ParleyConfig): Provider {
  return {
    provide: Approver,
    useFactory: (events: EventEmitter2, audit: AuditSink) =>
      new RecordedApprover(new BoundApprover(bound), server.approvalTimeout, {
        events,
        audit,
        log: new Logger(RecordedApprover.name),
      }),
    inject: [EventEmitter2, AuditSink],
  };
}

/** Who decides upon calls that need it, and where approvers look at what waits for them. */
export function approvalProviders(config: ParleyConfig, shared: SharedState): Provider[] {
  const { approvals, server } = config;
  const timeout = approvals.mode === 'client' ? server.approvalTimeout : approvals.expiry;
  return [
    { provide: Announcements, useFactory: () => new Announcements(approvals) },
    {
      provide: Approver,
      useFactory: (events: EventEmitter2, audit: AuditSink, announcements: Announcements) =>
        new RecordedApprover(createApprover(config, shared, announcements), timeout, {
          events,
          audit,
          log: new Logger(RecordedApprover.name),
        }),
      inject: [EventEmitter2, AuditSink, Announcements],
    },
    {
      provide: ApprovalOffice,
      useFactory: (records: RecordsSource, writes: GovernedWritesSource, audit: AuditSink) =>
        new ApprovalOffice({
          desk: shared.approvals,
          bus: shared.bus,
          records,
          presenting: (context) => writes.methods(context, { tool: 'approvals', timeout: 10 }),
          audit,
          approvers: approvals.approvers,
          log: new Logger(ApprovalOffice.name),
        }),
      inject: [RecordsSource, GovernedWritesSource, AuditSink],
    },
  ];
}
