import { Inject, Injectable } from '@nestjs/common';
import { McpRequest, type RequestTransport, type DataMeter, refusals, Refused, refuse } from '#core';
import {
  type FindOptions,
  type GovernedClass,
  type GovernedRecords,
  GovernedRecordsSource,
  type ParseRow,
} from '#data';
import { DataBudgets, meters } from '#dispatcher';
import type { ExportOrder } from '#tools';
import { BATCH_ROWS, BATCH_SECONDS, EXPORT_SETTINGS, type ExportSettings } from './export-tickets.js';

/** The class and the position of a walk. */
export interface WalkStart {
  /** Id of the last row that was returned; `''`: none was. */
  readonly after: string;
  /** Rows that were returned. */
  readonly rows: number;
}

export const FROM_THE_START: WalkStart = Object.freeze({ after: '', rows: 0 });

/** The agent that walks. */
export interface Walker
  extends Pick<McpRequest, 'agent'>, Pick<RequestTransport, 'signal' | 'correlationId' | 'telemetry'> {
  /** Called before each batch; throws when there may be no further one. */
  readonly proceed: () => Promise<void>;
}

/** A row with its id. */
export interface WalkedRow {
  readonly id: string;
  readonly row: ParseRow;
}

/**
 * Walks the rows of an order in the order of their ids. Every batch is a separate call through governed data access: the
 * identity, its rights and the rows that exist for it are resolved again each time.
 */
@Injectable()
export class ExportWalk {
  constructor(
    @Inject(GovernedRecordsSource) private readonly records: Pick<GovernedRecordsSource, 'for'>,
    @Inject(EXPORT_SETTINGS) private readonly settings: Pick<ExportSettings, 'maxRows'>,
    private readonly budgets: DataBudgets,
  ) {}

  /** @throws Refused when the class is closed to the agent */
  admit({ className }: ExportOrder, walker: Omit<Walker, 'proceed'>): Promise<GovernedClass> {
    return withinTime(walker.signal, (signal) => this.recordsFor(walker, signal).admit(className));
  }

  /**
   * @yields batches; those of a Parse Server whose Cloud Code removes rows from answers may be short
   * @throws Refused; also when there are too many rows, because a part must not appear complete
   */
  async *batches(order: ExportOrder, walker: Walker, start: WalkStart): AsyncGenerator<readonly WalkedRow[]> {
    const { className, limit, where, keys, include } = order;
    let { after, rows } = start;
    let skip = 0;
    for (;;) {
      const wanted = limit === null ? BATCH_ROWS : Math.min(BATCH_ROWS, limit - rows);
      if (wanted <= 0) return;
      await walker.proceed();
      const options: FindOptions = { where, keys, include, after, skip, limit: wanted, expectsScan: true };
      const { rows: found, passed = found.length } = await this.payForBatch(walker, (meter) =>
        withinTime(walker.signal, (signal) =>
          this.recordsFor(walker, signal, meter).page(className, options),
        ),
      );
      rows += found.length;
      if (rows > this.settings.maxRows) throw new Refused(tooMany(this.settings.maxRows));
      if (found.length > 0) {
        const batch = found.map((row) => ({ id: readId(row), row }));
        // A database that did not advance would be queried for the same rows forever.
        const last = (batch.at(-1) as WalkedRow).id;
        if (!isBehind(last, after))
          throw new Error('the rows of an export did not come in the order of their ids');
        after = last;
        skip = 0;
        yield batch;
      } else skip += passed;
      if (passed < wanted) return;
    }
  }

  /** For data budgets each batch is a call: an exhausted budget ends the walk. */
  private async payForBatch<T>(
    { agent }: Walker,
    batch: (meter: DataMeter | undefined) => Promise<T>,
  ): Promise<T> {
    const { budgets } = this;
    const budgeted = budgets.open(agent);
    if (!budgeted) return batch(undefined);
    await budgets.admit(budgeted);
    try {
      return await batch(budgeted);
    } finally {
      await budgets.charge(budgeted, budgeted.settle(0));
    }
  }

  /** Charges the bytes of a batch, which are known only after it was written. */
  async chargeBytes({ agent }: Pick<Walker, 'agent'>, bytes: number): Promise<void> {
    const { budgets } = this;
    const budgeted = budgets.open(agent);
    if (budgeted) await budgets.charge(budgeted, budgeted.settle(bytes));
  }

  private recordsFor(
    { agent, correlationId, telemetry }: Omit<Walker, 'proceed'>,
    signal: AbortSignal,
    budgeted?: DataMeter,
  ): GovernedRecords {
    const meter = meters(budgeted, telemetry?.meter);
    const context = new McpRequest(agent, { signal, correlationId, telemetry }, { meter });
    return this.records.for(context, { tool: 'export_data', timeout: BATCH_SECONDS });
  }
}

function tooMany(maxRows: number) {
  return refusals.invalidQuery(
    `The export has more than ${maxRows} rows; narrow it, or order fewer with limit`,
  );
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:E[+-]?\d+)?$/i;
const WHOLE = /^-?\d+$/;

/** Databases order texts by their bytes, and numbers, which ids of plain classes can be, by their value. */
function isBehind(id: string, before: string): boolean {
  if (Buffer.compare(Buffer.from(id), Buffer.from(before)) > 0) return true;
  if (!NUMBER.test(id) || !NUMBER.test(before)) return false;
  return WHOLE.test(id) && WHOLE.test(before) ? BigInt(id) > BigInt(before) : Number(id) > Number(before);
}

function readId(row: ParseRow): string {
  const id = row['objectId'];
  if (typeof id !== 'string' || id === '') throw new Error('a row of an export has no object id');
  return id;
}

/** Runs one batch under a separate signal: no listener remains on the walk's signal afterwards. */
async function withinTime<T>(outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  if (outer.aborted) throw refuse.cancelled();
  const own = new AbortController();
  const stop = () => own.abort(outer.reason);
  outer.addEventListener('abort', stop, { once: true });
  const timer = setTimeout(() => own.abort('timeout'), BATCH_SECONDS * 1000);
  try {
    return await work(own.signal);
  } finally {
    clearTimeout(timer);
    outer.removeEventListener('abort', stop);
  }
}
