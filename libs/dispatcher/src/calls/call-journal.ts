import { Inject, Injectable, Logger } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { type RequestContext, type DataUse, Refused, type ToolTelemetry } from '#core';
import {
  ArgumentDigest,
  auditedAgent,
  auditedArgumentNames,
  auditedRefusal,
  type AuditRecord,
  AuditSink,
  embeddingCost,
  OperationLog,
  resultCost,
  type TaskEndEvent,
} from '#audit';
import { Policies } from '#policy';
import type { ToolOutcome } from '#tools';
import { ToolCallbacks } from './tool-callbacks.js';
import type { CallNotes } from './tool-execution.js';

export interface FinishedRun {
  readonly tool: string;
  readonly args: unknown;
  readonly context: RequestContext;
  readonly outcome: ToolOutcome;
  readonly milliseconds: number;
  readonly notes: CallNotes;
  /** The same telemetry as in the audit record. */
  readonly observed?: ToolTelemetry | undefined;
}

/** Span for every record, including refusals by gates. */
const RECORDED = 'parley.audit';
/** Span for records of calls that reached their tool. A call that a gate refused never ran. */
const EXECUTED = 'parse.agent.tool_call';

/**
 * Records the outcome of each call once per listener: audit record, events, operation log, error callbacks. A listener
 * that fails changes neither the outcome nor the input of the others.
 */
@Injectable()
export class CallJournal {
  private readonly logger = new Logger(CallJournal.name);

  /** @param digest null: the record contains no digest of the arguments */
  constructor(
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
    private readonly audit: AuditSink,
    @Inject(ArgumentDigest) private readonly digest: ArgumentDigest | null,
    private readonly log: OperationLog,
    private readonly callbacks: ToolCallbacks,
    private readonly events: EventEmitter2,
  ) {}

  /** @returns a promise when the answer must wait for the record. A rejection means that the record was not stored. */
  record(run: FinishedRun): Promise<void> | undefined {
    const { audit, events, log, callbacks } = this;
    const { tool, args, context, outcome, notes } = run;
    const { agent } = context;
    const entry = this.entryOf(run);
    const refusal = outcome.ok ? undefined : outcome.refusal;
    let kept: void | Promise<void> = undefined;
    this.write(tool, () => (kept = audit.record(entry)));
    run.observed?.ends(entry);
    this.write(tool, () => events.emit(RECORDED, entry));
    if (notes.begun) this.write(tool, () => events.emit(EXECUTED, entry));
    this.write(tool, () => log.record({ tool, args, agent, ...(refusal && { refusal }) }));
    if (refusal) callbacks.announceError(notes.error ?? new Refused(refusal), { tool, args, agent });
    return kept ?? undefined;
  }

  /** Records the outcome of a call whose agent no longer exists. */
  recordTaskEnd(event: TaskEndEvent): void {
    this.write(event.tool, () => this.audit.recordEvent(event));
  }

  private entryOf({ tool, args, context, outcome, milliseconds, notes }: FinishedRun): AuditRecord {
    const { version, switches } = this.policies.of(context.agent);
    const refusal = outcome.ok ? undefined : outcome.refusal;
    return {
      at: new Date().toISOString(),
      tool: tool.slice(0, 128),
      args_keys: auditedArgumentNames(args),
      ...(this.digest && { args_digest: this.digest.of(tool, args) }),
      ...auditedAgent(context.agent),
      policy_version: version,
      ...(context.correlationId !== undefined && { correlation_id: context.correlationId }),
      ...(context.telemetry?.traceId !== undefined && { trace_id: context.telemetry.traceId }),
      success: outcome.ok,
      ...(outcome.ok && resultCost(Buffer.byteLength(outcome.text), switches.tokenCostPerMillionInput)),
      ...(notes.use && usedBy(notes.use)),
      ...(notes.approver !== undefined && { approver: notes.approver }),
      ...(notes.embedding && embeddingCost(notes.embedding, switches.embedCostPerMillionTokens)),
      ...(notes.phrase !== undefined && { prompt_injection_phrase: notes.phrase }),
      duration_ms: Math.round(milliseconds * 100) / 100,
      ...(refusal && auditedRefusal(refusal, classOf(notes.error))),
    };
  }

  private write(tool: string, work: () => unknown): void {
    try {
      work();
    } catch (error) {
      this.logger.error(`a listener to the record of '${tool}' failed: ${String(error)}`);
    }
  }
}

function usedBy({ rows, databaseTime }: Omit<DataUse, 'calls'>): Pick<AuditRecord, 'rows' | 'database_ms'> {
  return { rows, database_ms: Math.round(databaseTime * 100) / 100 };
}

/** A returned refusal counts like a thrown one. */
function classOf(error: unknown): string {
  if (error === undefined) return Refused.name;
  return error instanceof Error ? error.constructor.name : typeof error;
}
