import {
  type Abortable,
  type DataMeter,
  type DataOperation,
  FairQueue,
  isAborted,
  NoCapacityError,
  refuse,
} from '#core';
import type { SchemaSnapshot } from '#policy';
import type { SearchHit, Searches } from '../record-search.js';
import {
  type Caller,
  type OperationContext,
  type Operations,
  type Reads,
  type Store,
  StoreError,
  type StoreOperation,
  type Writes,
} from '../record-store.js';

export interface DatabaseTurnsOptions {
  /**
   * Operations of agents that run at once. Default 90: of 100 connections, the others are for sessions, roles, records and
   * changes.
   */
  readonly atOnce?: number;
  /** Operations of one principal that run at once. Default 10. */
  readonly perPrincipal?: number;
  /** Milliseconds that an operation waits. Default 10,000. */
  readonly timeout?: number;
}

/** Operations of one principal, and of all, that may wait. */
const WAITING = { waitingPerKey: 1_000, waiting: 10_000 };

/**
 * Shares the capacity of the database among principals: each may use a part of it, and waiting principals are served in turn.
 * It counts for this process only: the load of other replicas is not known here.
 */
export class DatabaseTurns {
  private readonly turns: FairQueue;
  /** Of databases beside that of the service, by name. */
  private readonly further = new Map<string, DatabaseTurns>();

  constructor({ atOnce = 90, perPrincipal = 10, timeout = 10_000 }: DatabaseTurnsOptions = {}) {
    this.turns = new FairQueue({ atOnce, perKey: perPrincipal, timeout, ...WAITING });
  }

  /** The turns at one database, each with its own: one that stalls does not fill those of the others. */
  at(database: string | undefined): DatabaseTurns {
    if (database === undefined) return this;
    let turns = this.further.get(database);
    if (!turns) this.further.set(database, (turns = new DatabaseTurns()));
    return turns;
  }

  /**
   * @throws Refused when the principal's own operations leave no slot; StoreError when the operations of all principals do,
   * or when it is cancelled
   */
  async run<T>(principal: string, work: () => Promise<T>, operation: Abortable): Promise<T> {
    const now = isAborted(operation) ? null : this.turns.turnNow(principal);
    const end = now ?? (await this.waitForTurn(principal, operation));
    try {
      return await work();
    } finally {
      end();
    }
  }

  private async waitForTurn(principal: string, { signal }: Abortable): Promise<() => void> {
    try {
      return await this.turns.turn(principal, signal);
    } catch (error) {
      if (signal.aborted) throw new StoreError('cancelled', { cause: error });
      if (!(error instanceof NoCapacityError)) throw error;
      if (error.own) throw refuse.databaseShareTaken(1 + Math.random() * 4);
      throw new StoreError('unavailable', { cause: error });
    }
  }
}

/** The wrapper of every operation of one call. */
export interface Metering {
  /** Absent when nothing is measured. */
  readonly meter?: DataMeter | undefined;
  /** The slots at the databases, and the principal that takes them. Absent when no other principal uses the database. */
  readonly turns?: { readonly of: DatabaseTurns; readonly principal: string } | undefined;
  /** Which say in what database a class is. Absent: all are in that of the service. */
  readonly schemas?: Pick<SchemaSnapshot, 'get'> | undefined;
}

/** Runs operations of a port for one call. @param asked the caller's constraint, which a refusal may name */
export type Run<P extends Operations<P>> = <K extends keyof P>(
  operation: StoreOperation<P, K>,
  asked?: unknown,
) => Promise<P[K]['answer']>;

/** For whom operations of one call run, and under which limits. */
export interface MeteredCall extends Metering {
  readonly caller: Caller;
  readonly context: OperationContext;
}

/** What a meter counts of the operations of a port. */
export type Measures<P extends Operations<P>> = {
  readonly [K in keyof P]: {
    readonly name: DataOperation['name'];
    /** Rows that the answer counts as. */
    readonly rows: (answer: P[K]['answer']) => number;
  };
};

/** Runs operations of a port in the turns of its principal, and reports each to the meter of the call. */
export function runMetered<P extends Operations<P>>(
  store: Store<P>,
  measures: Measures<P>,
  call: MeteredCall,
): Run<P> {
  return (operation) => {
    const { className } = operation;
    const { context, caller } = call;
    const measure = { ...measures[operation.kind], className };
    return runMeasured(measure, () => store.run(operation, context, caller), call);
  };
}

/** Runs one operation in a turn of its principal, and reports it to the meter of the call. */
export async function runMeasured<T>(
  { name, className, rows }: DataOperation & { readonly rows: (answer: T) => number },
  work: () => Promise<T>,
  { context, meter, turns, schemas }: Omit<MeteredCall, 'caller'>,
): Promise<T> {
  // Waiting is part of the time of an operation, and the time of a failed one counts too.
  const database = schemas?.get(className)?.database;
  const ends = meter?.begins({ name, className, ...(database !== undefined && { database }) });
  try {
    const answer = await (turns ? turns.of.at(database).run(turns.principal, work, context) : work());
    ends?.(rows(answer));
    return answer;
  } catch (error) {
    ends?.(0, error);
    throw error;
  }
}

const rowsIn = (rows: readonly unknown[]): number => rows.length;
const noRows = (): number => 0;

export const READ_MEASURES: Measures<Reads> = {
  find: { name: 'find', rows: rowsIn },
  findShown: { name: 'find', rows: ({ count }) => count },
  count: { name: 'count', rows: noRows },
  aggregate: { name: 'aggregate', rows: ({ rows }) => rows.length },
  // Pairs are also those of rows that the caller may not read, and the rows at both ends are counted.
  related: { name: 'related', rows: noRows },
  explain: { name: 'explain', rows: noRows },
};

const hitsIn = (hits: readonly SearchHit[]): number => hits.length;

export const SEARCH_MEASURES: Measures<Searches> = {
  text: { name: 'search', rows: hitsIn },
  facets: { name: 'facets', rows: noRows },
  nearest: { name: 'nearest', rows: hitsIn },
};

export const WRITE_MEASURES: Measures<Writes> = {
  create: { name: 'create', rows: () => 1 },
  update: { name: 'update', rows: (row) => (row ? 1 : 0) },
  delete: { name: 'delete', rows: noRows },
};
