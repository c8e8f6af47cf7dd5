import { Inject, Injectable, Logger } from '@nestjs/common';
import { type Agent, type RequestContext, Refused, refusals, Unauthorized } from '#core';
import { auditedAgent, auditedRefusal, AuditSink, resultCost } from '#audit';
import { Policies } from '#policy';

/** One reading of a whole export or of a part of it. */
export interface ExportReading {
  readonly agent: Agent;
  readonly correlationId?: string | undefined;
  readonly rows: number;
  readonly bytes: number;
  readonly milliseconds: number;
  /** Whether the reading ended by itself and was not aborted. */
  readonly ended: boolean;
  readonly error?: unknown;
  /** The operator's phrase that was found in the data. */
  readonly phrase?: string | undefined;
}

/** Records every reading; an aborted one with the rows and bytes that had been sent by then. */
@Injectable()
export class ExportJournal {
  private readonly logger = new Logger(ExportJournal.name);

  constructor(
    private readonly audit: AuditSink,
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
  ) {}

  /** Null when a reading can be recorded, else the seconds until it may be tried again. */
  admit(): number | null {
    return this.audit.admit();
  }

  /** Sent data cannot be revoked: the reader does not wait for its record. */
  record({ agent, correlationId, rows, bytes, milliseconds, ended, error, phrase }: ExportReading): void {
    const { version, switches } = this.policies.of(agent);
    const entry = {
      at: new Date().toISOString(),
      tool: 'export_read',
      args_keys: [],
      ...auditedAgent(agent),
      policy_version: version,
      ...(correlationId !== undefined && { correlation_id: correlationId }),
      success: ended,
      ...resultCost(bytes, switches.tokenCostPerMillionInput),
      rows,
      ...(phrase !== undefined && { prompt_injection_phrase: phrase }),
      duration_ms: Math.round(milliseconds * 100) / 100,
      ...(!ended && failure(error)),
    };
    try {
      this.audit.record(entry)?.catch(() => undefined);
    } catch (error) {
      this.logger.error(`the audit sink failed: ${String(error)}`);
    }
  }
}

function failure(error: unknown) {
  if (error instanceof Refused) return auditedRefusal(error.refusal, 'Refused');
  // The reader ended the reading.
  if (error === undefined) return auditedRefusal(refusals.cancelled(), 'Refused');
  const error_class = error instanceof Error ? error.constructor.name : typeof error;
  const cause = error instanceof Error ? error.message : 'not an error';
  if (error instanceof Unauthorized)
    return {
      error_code: 'access_denied' as const,
      error_class,
      gate: 'identity',
      cause: 'the session has ended',
    };
  return { error_code: 'internal_error' as const, error_class, cause };
}

/** The members of a call that the record of a reading contains. */
export type Reader = Pick<RequestContext, 'agent' | 'signal' | 'correlationId' | 'telemetry'>;
