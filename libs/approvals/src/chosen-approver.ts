import { Inject, Injectable, Logger, type Provider } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { ArgumentDigest, AuditSink, readClassName, readWrittenObject } from '#audit';
import { CurrentAgents, FairQueue, Refused } from '#core';
import {
  APPROVAL_LAPSED,
  type ApprovalDecision,
  type ApprovalRequest,
  Approver,
  ProtocolError,
} from '#dispatcher';
import { SharedState, SuspendedAgents } from '#state';
import { APPROVAL_OPTIONS } from './approval-service.js';
import { ApprovalWebhook, type ApprovalWebhookOptions } from './approval-webhook.js';
import {
  ApproversInTurn,
  ClientApprover,
  StoredApprover,
  type StoredApproverDependencies,
  TOO_MANY_PENDING,
} from './approvers.js';

export interface ApprovalListeners {
  readonly events: Pick<EventEmitter2, 'emit'>;
  readonly audit: Pick<AuditSink, 'recordApproval'>;
  readonly digest: Pick<ArgumentDigest, 'of' | 'nameObject'>;
  readonly log: { error(line: string): void };
}

/** Calls of one principal that wait for a decision in this process. */
const MAX_WAITING = 50;

/** Emits an event for each decision and records it, unless the approval service has recorded it. */
export class RecordedApprover extends Approver {
  /** Calls that wait, by principal: also those that ask for the same, and wait for one decision. */
  private readonly places = new FairQueue({
    atOnce: Infinity,
    perKey: MAX_WAITING,
    waitingPerKey: 0,
    timeout: 0,
  });

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
      const decision = withLapse(await this.waitFor(request), request);
      if (!decision.again) this.record(request, decision, performance.now() - started);
      return decision;
    } catch (error) {
      // The protocol answers this error, and the call is denied. A question that is only now sent is no decision.
      if (error instanceof ProtocolError)
        this.record(request, { outcome: 'unavailable', reason: error.message }, performance.now() - started);
      throw error;
    }
  }

  private async waitFor(request: ApprovalRequest): Promise<ApprovalDecision> {
    const leave = this.places.turnNow(request.context.agent.principal);
    if (!leave) return TOO_MANY_PENDING;
    try {
      return await this.approver.review(request);
    } finally {
      leave();
    }
  }

  private record(request: ApprovalRequest, decision: ApprovalDecision, waited: number): void {
    const { tool, args, context, effectivePermission, policyVersion } = request;
    const className = readClassName(args);
    const { events, audit, digest } = this.listeners;
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
        ...(className !== undefined && { class_name: className }),
        ...digest.nameObject(className, readWrittenObject(tool.name, args)),
        args_digest: digest.of(tool.name, args),
        policy_version: policyVersion,
        ...(decision.caseId !== undefined && { approval_id: decision.caseId }),
        ...(decision.by && { approver: decision.by.principal, via: decision.by.via }),
        principal: agent.principal,
        agent_name: agent.definition.name,
        ...(agent.keyName !== null && { key_name: agent.keyName }),
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

/** The decision as it counts: an approval was given for the policy and the agent that asked. */
function withLapse(
  decision: ApprovalDecision,
  request: Pick<ApprovalRequest, 'isCurrent'>,
): ApprovalDecision {
  if (decision.outcome !== 'approve' || request.isCurrent()) return decision;
  const { caseId } = decision;
  return { outcome: 'deny', reason: APPROVAL_LAPSED, ...(caseId !== undefined && { caseId }) };
}

/** Who decides on calls that need the approval of a person; durations in seconds. */
export interface ApprovalsModuleOptions {
  readonly mode: 'client' | 'desk' | 'both';
  /** How long a client has to answer. */
  readonly clientTimeout: number;
  /** How long a case waits for another person. */
  readonly expiry: number;
  /** Names of the agents that may decide. */
  readonly approvers: readonly string[];
  /** Receives every new case. Null: none. */
  readonly webhook: Omit<ApprovalWebhookOptions, 'log'> | null;
}

/** Sends new cases to the operator's webhook, and ends with the application. */
@Injectable()
export class ApprovalAnnouncements {
  private readonly webhook: ApprovalWebhook | null;

  constructor(@Inject(APPROVAL_OPTIONS) { webhook }: ApprovalsModuleOptions) {
    this.webhook = webhook && new ApprovalWebhook({ ...webhook, log: new Logger(ApprovalWebhook.name) });
  }

  readonly announce = (opened: Parameters<ApprovalWebhook['announce']>[0]) => this.webhook?.announce(opened);

  async onModuleDestroy(): Promise<void> {
    await this.webhook?.close();
  }
}

function createApprover(
  { mode, clientTimeout, expiry }: ApprovalsModuleOptions,
  { approvals: store, bus }: SharedState,
  others: Pick<StoredApproverDependencies, 'announce' | 'digest' | 'mayDecide'>,
): Approver {
  const client = new ClientApprover(clientTimeout, bus);
  const another = new StoredApprover({ store, bus, ...others }, { expiry });
  switch (mode) {
    case 'client':
      return client;
    case 'desk':
      return another;
    case 'both':
      return new ApproversInTurn([client, another]);
  }
}

/** Asks whom the configuration names. */
@Injectable()
export class ConfiguredApprover extends RecordedApprover {
  constructor(
    @Inject(APPROVAL_OPTIONS) options: ApprovalsModuleOptions,
    announcements: ApprovalAnnouncements,
    shared: SharedState,
    events: EventEmitter2,
    audit: AuditSink,
    digest: ArgumentDigest,
    suspended: SuspendedAgents,
    @Inject(CurrentAgents) agents: Pick<CurrentAgents, 'findDefinition'>,
  ) {
    const timeout = options.mode === 'client' ? options.clientTimeout : options.expiry;
    const mayDecide = (name: string) =>
      options.approvers.includes(name) &&
      agents.findDefinition(name) !== undefined &&
      !suspended.isNameSuspended(name);
    const { announce } = announcements;
    super(createApprover(options, shared, { announce, digest, mayDecide }), timeout, {
      events,
      audit,
      digest,
      log: logOfRecords(),
    });
  }
}

const logOfRecords = () => new Logger(RecordedApprover.name);

const OUTCOMES: readonly unknown[] = ['approve', 'deny', 'unavailable'];
const NO_DECISION: ApprovalDecision = { outcome: 'unavailable', reason: 'nobody could decide' };

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
      if (error instanceof ProtocolError || error instanceof Refused) throw error;
      this.logger.error(`the bound Approver failed: ${String(error)}`);
    }
    return NO_DECISION;
  }
}

/** Overrides the approver with an application's own; what it decides is recorded like any other decision. */
export function provideApprover(bound: Approver): Provider {
  return {
    provide: Approver,
    useFactory: (
      events: EventEmitter2,
      audit: AuditSink,
      digest: ArgumentDigest,
      { clientTimeout }: ApprovalsModuleOptions,
    ) =>
      new RecordedApprover(new BoundApprover(bound), clientTimeout, {
        events,
        audit,
        digest,
        log: logOfRecords(),
      }),
    inject: [EventEmitter2, AuditSink, ArgumentDigest, APPROVAL_OPTIONS],
  };
}
