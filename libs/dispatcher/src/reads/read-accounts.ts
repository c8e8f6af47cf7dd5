import { Inject, Injectable, Logger } from '@nestjs/common';
import { describeError, type McpRequest, refusals, Refused } from '#core';
import { AuditSink } from '#audit';
import type { AggregateOptions, FindOptions, GovernedRecords } from '#data';
import type { ToolOutcome } from '#tools';
import { CallJournal } from '../calls/call-journal.js';
import { type BudgetedCall, CallMeter, DataBudgets, meters } from '../calls/data-budgets.js';
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
  private readonly logger = new Logger(ReadAccounts.name);

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
    const admitted = () => (admission ??= this.admit(context, budgeted));
    const access = records.for(context.with({ meter: meters(meter, context.meter) }));
    const settled = async (outcome: ToolOutcome, error?: unknown): Promise<void> => {
      if (!admission) return;
      const use = meter.settle(outcome.ok ? Buffer.byteLength(outcome.text) : 0);
      if (budgeted) await budgets.charge(budgeted, use);
      if (error instanceof InputRequired) return;
      const milliseconds = performance.now() - started;
      await journal.record({ tool: name, args, context, outcome, milliseconds, notes: { use, error } });
    };
    let result: T;
    try {
      result = await work(new AdmittedRecords(access, admitted));
    } catch (error) {
      await settled({ ok: false, refusal: toRefusal(error, name) }, error).catch(() => undefined);
      throw error;
    }
    const text = admission ? JSON.stringify(result) : '';
    await settled({ ok: true, data: result, text, structured: false }).catch(() => {
      throw new Refused(refusals.auditWithheld(name, false));
    });
    return result;
  }

  /** In the order in which tools pass these gates. @throws Refused */
  private async admit({ agent }: McpRequest, budgeted: BudgetedCall | null): Promise<void> {
    await spendCall(agent, this.logger);
    const retryAfter = this.audit.admit();
    if (retryAfter !== null) throw new Refused(refusals.auditUnavailable(retryAfter));
    if (budgeted) await this.budgets.admit(budgeted);
  }
}

function toRefusal(error: unknown, name: string) {
  if (error instanceof Refused) return error.refusal;
  const cause = error instanceof Error ? `${error.name}: ${describeError(error)}` : String(error);
  return refusalByProtocol(error) ?? refusals.internalError(name, cause);
}

/** A governed data access that opens with the first read of rows. Class information is open from the start. */
class AdmittedRecords implements GovernedRecords {
  /** @param admitted called before every read of rows; throws to refuse it */
  constructor(
    private readonly access: GovernedRecords,
    private readonly admitted: () => Promise<void>,
  ) {}

  async find(className: unknown, options?: FindOptions) {
    return (await this.openRecords()).find(className, options);
  }

  async page(className: unknown, options?: FindOptions) {
    return (await this.openRecords()).page(className, options);
  }

  async count(className: unknown, options?: Pick<FindOptions, 'where' | 'applyCanonicalFilter'>) {
    return (await this.openRecords()).count(className, options);
  }

  async get(className: unknown, objectId: unknown, options?: Pick<FindOptions, 'keys' | 'include'>) {
    return (await this.openRecords()).get(className, objectId, options);
  }

  async getMany(
    className: unknown,
    objectIds: readonly string[],
    options?: Pick<FindOptions, 'keys' | 'include'>,
  ) {
    return (await this.openRecords()).getMany(className, objectIds, options);
  }

  async samples(className: unknown, limit: number) {
    return (await this.openRecords()).samples(className, limit);
  }

  async aggregate(className: unknown, pipeline: unknown, options?: AggregateOptions) {
    return (await this.openRecords()).aggregate(className, pipeline, options);
  }

  async explain(className: unknown, options?: Pick<FindOptions, 'where'>) {
    return (await this.openRecords()).explain(className, options);
  }

  checkAggregate(className: unknown, pipeline: unknown, options?: Pick<AggregateOptions, 'where'>) {
    return this.access.checkAggregate(className, pipeline, options);
  }

  admit(...args: Parameters<GovernedRecords['admit']>) {
    return this.access.admit(...args);
  }

  indexes(...args: Parameters<GovernedRecords['indexes']>) {
    return this.access.indexes(...args);
  }

  classes() {
    return this.access.classes();
  }

  describe(className: unknown) {
    return this.access.describe(className);
  }

  private async openRecords(): Promise<GovernedRecords> {
    await this.admitted();
    return this.access;
  }
}
