import {
  type DynamicModule,
  Injectable,
  Logger,
  Module,
  type ModuleMetadata,
  type Provider,
} from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { Refused } from '#core';
import { AuditSink } from '#audit';
import { SharedState } from '#state';
import { type ApprovalDecision, type ApprovalRequest, Approver, ProtocolFault } from '#dispatcher';
import { APPROVAL_OPTIONS, ApprovalOffice } from './approval-service.js';
import { ApprovalWebhook, type ApprovalWebhookOptions } from './approval-webhook.js';
import { ApproversInTurn, ClientApprover, StoredApprover } from './approvers.js';
import { RecordedApprover } from './recorded-approver.js';

/** Who decides upon calls that need a person; durations in seconds. */
export interface ApprovalsModuleOptions {
  readonly mode: 'client' | 'desk' | 'both';
  /** That a client has to answer. */
  readonly clientTimeout: number;
  /** That a case waits for another person. */
  readonly expiry: number;
  /** Names of the agents that may decide. */
  readonly approvers: readonly string[];
  /** Receives every new case. Null: none. */
  readonly webhook: Omit<ApprovalWebhookOptions, 'log'> | null;
}

/** Sends new cases to the operator's webhook, and ends with the application. */
@Injectable()
class Announcements {
  private readonly webhook: ApprovalWebhook | null;

  constructor(webhook: ApprovalsModuleOptions['webhook']) {
    this.webhook = webhook && new ApprovalWebhook({ ...webhook, log: new Logger(ApprovalWebhook.name) });
  }

  readonly announce = (opened: Parameters<ApprovalWebhook['announce']>[0]) => this.webhook?.announce(opened);

  async onModuleDestroy(): Promise<void> {
    await this.webhook?.close();
  }
}

/** Who decides upon calls that need it, and where approvers look at what waits for them. */
@Module({})
export class ApprovalsModule {
  /** @param imports provide governed data, the audit sink, the shared state and the events */
  static register(options: ApprovalsModuleOptions, imports: ModuleMetadata['imports']): DynamicModule {
    const timeout = options.mode === 'client' ? options.clientTimeout : options.expiry;
    return {
      module: ApprovalsModule,
      imports: [...(imports ?? [])],
      providers: [
        { provide: APPROVAL_OPTIONS, useValue: options },
        { provide: Announcements, useFactory: () => new Announcements(options.webhook) },
        {
          provide: Approver,
          useFactory: (
            events: EventEmitter2,
            audit: AuditSink,
            announcements: Announcements,
            shared: SharedState,
          ) => recorded(chosenApprover(options, shared, announcements), timeout, events, audit),
          inject: [EventEmitter2, AuditSink, Announcements, SharedState],
        },
        ApprovalOffice,
      ],
      exports: [Approver, ApprovalOffice],
    };
  }
}

function chosenApprover(
  { mode, clientTimeout, expiry }: ApprovalsModuleOptions,
  { approvals: desk, bus }: SharedState,
  { announce }: Announcements,
): Approver {
  const client = new ClientApprover(clientTimeout);
  const another = new StoredApprover({ desk, bus, announce }, { expiry });
  switch (mode) {
    case 'client':
      return client;
    case 'desk':
      return another;
    case 'both':
      return new ApproversInTurn([client, another]);
  }
}

const recorded = (approver: Approver, timeout: number, events: EventEmitter2, audit: AuditSink): Approver =>
  new RecordedApprover(approver, timeout, { events, audit, log: new Logger(RecordedApprover.name) });

const OUTCOMES: readonly unknown[] = ['approve', 'deny', 'unavailable'];
const UNDECIDED: ApprovalDecision = { outcome: 'unavailable', reason: 'nobody could decide' };

/** Calls code of the application. An error of it denies the call, and so does an answer that is no decision. */
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

/** Overrides the approver with an application's own; what it decides is recorded like any other decision. */
export function approvedBy(bound: Approver): Provider {
  return {
    provide: Approver,
    useFactory: (events: EventEmitter2, audit: AuditSink, { clientTimeout }: ApprovalsModuleOptions) =>
      recorded(new BoundApprover(bound), clientTimeout, events, audit),
    inject: [EventEmitter2, AuditSink, APPROVAL_OPTIONS],
  };
}
