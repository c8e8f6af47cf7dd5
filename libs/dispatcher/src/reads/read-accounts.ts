import { Inject, Injectable } from '@nestjs/common';
import { describeError, type McpRequest, refusals, Refused, refuse } from '#core';
import { AuditSink } from '#audit';
import type { GovernedRecords } from '#data';
import type { ToolOutcome } from '#tools';
import { CallJournal } from '../calls/call-journal.js';
import { type BudgetedCall, CallMeter, DataBudgets, meters } from '../calls/call-limits.js';
import { refusalByProtocol } from '../calls/call-journal.js';
import { spendCall } from '../calls/guards.js';
import { RunningCalls } from '../calls/interceptors.js';
import { InputRequired } from '../client-requests/client-requests.js';

/** Creates the governed data access of one call. */
export abstract class RecordsSource {
  abstract for(context: McpRequest): GovernedRecords;
}

/** One run of an application's code outside tools. */
export interface AccountedRun {
  /** The name in its record. It contains a colon, which no tool name does. */
  readonly name: string;
  readonly args: unknown;
  readonly context: McpRequest;
}

/**
 * Prompts and resources of an application read rows under the same checks as a tool call: rate limit, audit, data
 * budgets, and a record of the outcome. A run that reads no row consumes nothing and leaves no record.
 */
@Injectable()
export class ReadAccounts {
  constructor(
    private readonly records: RecordsSource,
    @Inject(AuditSink) private readonly audit: Pick<AuditSink, 'admit'>,
    private readonly budgets: DataBudgets,
    @Inject(CallJournal) private readonly journal: Pick<CallJournal, 'record'>,
    @Inject(RunningCalls) private readonly running: Pick<RunningCalls, 'begin'>,
  ) {}

  /** @throws the errors of the work; Refused when no row may be read, or when its record is not stored */
  async run<T>(run: AccountedRun, work: (records: GovernedRecords) => Promise<T>): Promise<T> {
    const end = await this.running.begin(run.context);
    try {
      return await this.runAccounted(run, work);
    } finally {
      end();
    }
  }

  private async runAccounted<T>(
    { context, name, args }: AccountedRun,
    work: (records: GovernedRecords) => Promise<T>,
  ): Promise<T> {
    const { records, budgets, journal } = this;
    const started = performance.now();
    const budgeted = budgets.open(context.agent);
    const meter = budgeted ?? new CallMeter();
    let admission: Promise<void> | undefined;
    let reads = false;
    const admitted = () =>
      (admission ??= this.admit(context, budgeted).then(() => {
        reads = true;
      }));
    const access = records.for(context.with({ meter: meters(meter, context.meter) }));
    const settled = async (outcome: ToolOutcome, error?: unknown): Promise<void> => {
      if (!admission) return;
      const use = meter.settle(outcome.ok ? Buffer.byteLength(outcome.text) : 0);
      if (budgeted) await budgets.charge(budgeted, use);
      if (error instanceof InputRequired) return;
      const milliseconds = performance.now() - started;
      await journal.record({
        tool: name,
        args,
        context,
        outcome,
        milliseconds,
        notes: { use, error, reads },
      });
    };
    let result: T;
    try {
      result = await work(admitReads(access, admitted));
    } catch (error) {
      await settled({ ok: false, refusal: toRefusal(error, name) }, error).catch(() => undefined);
      throw error;
    }
    // A resource that is not there has no content.
    const text = admission && result !== undefined ? JSON.stringify(result) : '';
    await settled({ ok: true, data: result, text, structured: false }).catch(() => {
      throw refuse.auditWithheld(name, false);
    });
    return result;
  }

  /** In the order in which tools pass these gates. @throws Refused */
  private async admit({ agent }: McpRequest, budgeted: BudgetedCall | null): Promise<void> {
    await spendCall(agent);
    const retryAfter = this.audit.admit();
    if (retryAfter !== null) throw refuse.auditUnavailable(retryAfter);
    if (budgeted) await this.budgets.admit(budgeted);
  }
}

function toRefusal(error: unknown, name: string) {
  if (error instanceof Refused) return error.refusal;
  const cause = error instanceof Error ? `${error.name}: ${describeError(error)}` : String(error);
  return refusalByProtocol(error) ?? refusals.internalError(name, cause);
}

/** Which methods read rows. Information on classes is open from the start. */
const READS_ROWS: Readonly<Record<keyof GovernedRecords, boolean>> = {
  find: true,
  page: true,
  count: true,
  get: true,
  getMany: true,
  samples: true,
  aggregate: true,
  explain: true,
  checkAggregate: false,
  admit: false,
  indexes: false,
  classes: false,
  describe: false,
};

type Method = (...args: unknown[]) => Promise<unknown>;

/** @param admitted called before every read of rows; throws to refuse it */
function admitReads(access: GovernedRecords, admitted: () => Promise<void>): GovernedRecords {
  const methods = Object.entries(READS_ROWS).map(([name, readsRows]) => {
    const method = (access[name as keyof GovernedRecords] as Method).bind(access);
    return [name, readsRows ? async (...args: unknown[]) => (await admitted(), method(...args)) : method];
  });
  return Object.fromEntries(methods) as unknown as GovernedRecords;
}
