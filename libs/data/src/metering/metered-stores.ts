import {
  type Abortable,
  type DataMeter,
  type DataOperation,
  FairQueue,
  isAborted,
  NoCapacityError,
  refusals,
  Refused,
} from '#core';
import {
  type FacetCounts,
  type FacetQuery,
  RecordSearcher,
  type SearchHit,
  type TextSearchQuery,
  type VectorSearchQuery,
} from '../record-search.js';
import {
  type AggregateQuery,
  type CountQuery,
  type FindQuery,
  type OperationContext,
  type ParseRow,
  type PipelineRoute,
  type QueryPlan,
  RecordReader,
  type RecordWriter,
  type RelatedQuery,
  type ShownRequest,
  type StoreCall,
  StoreError,
  WrappedWriter,
  type WrappedWrite,
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

  constructor({ atOnce = 90, perPrincipal = 10, timeout = 10_000 }: DatabaseTurnsOptions = {}) {
    this.turns = new FairQueue({ atOnce, perKey: perPrincipal, timeout, ...WAITING });
  }

  /**
   * @throws Refused when the principal's own operations leave no slot; StoreError when the operations of all principals do,
   * or when it is cancelled
   */
  async run<T>(principal: string, work: () => Promise<T>, operation: Abortable): Promise<T> {
    const now = isAborted(operation) ? null : this.turns.turnNow(principal);
    const end = now ?? (await this.waited(principal, operation));
    try {
      return await work();
    } finally {
      end();
    }
  }

  private async waited(principal: string, { signal }: Abortable): Promise<() => void> {
    try {
      return await this.turns.turn(principal, signal);
    } catch (error) {
      if (signal.aborted) throw new StoreError('cancelled', { cause: error });
      if (!(error instanceof NoCapacityError)) throw error;
      if (error.own) throw new Refused(refusals.databaseShareTaken(1 + Math.random() * 4));
      throw new StoreError('unavailable', { cause: error });
    }
  }
}

/** Waits for a slot for the principal of the call. */
export type Turn = <T>(work: () => Promise<T>, operation: Abortable) => Promise<T>;

/** The wrapper of every operation of one call. */
export interface Metering {
  /** Absent when nothing is measured. */
  readonly meter?: DataMeter | undefined;
  /** Absent when no other principal uses the database. */
  readonly turn?: Turn | undefined;
}

/**
 * Runs one operation in its turn and under a meter. Waiting is part of its time, and the time of a failed operation counts
 * too.
 */
async function metered<T>(
  { meter, turn }: Metering,
  { name, className, operation }: DataOperation & { readonly operation: Abortable },
  work: () => Promise<T>,
  rowsOf: (result: T) => number,
): Promise<T> {
  const ends = meter?.begins({ name, className });
  try {
    const result = await (turn ? turn(work, operation) : work());
    ends?.(rowsOf(result));
    return result;
  } catch (error) {
    ends?.(0, error);
    throw error;
  }
}

const rowsIn = (rows: readonly unknown[]): number => rows.length;
const noRows = (): number => 0;

/** Reads through the wrapped reader, in the turns of its principal, and reports each operation to the meter of the call. */
export class MeteredReader extends RecordReader {
  constructor(
    private readonly reader: RecordReader,
    private readonly metering: Metering,
  ) {
    super();
  }

  override get pipelineRoute(): PipelineRoute {
    return this.reader.pipelineRoute;
  }

  override forCall(call: StoreCall): RecordReader {
    return new MeteredReader(this.reader.forCall(call), this.metering);
  }

  find(query: FindQuery, operation: OperationContext): Promise<ParseRow[]> {
    return metered(
      this.metering,
      { name: 'find', className: query.className, operation },
      () => this.reader.find(query, operation),
      rowsIn,
    );
  }

  override findShown(query: FindQuery, shown: ShownRequest, operation: OperationContext) {
    return metered(
      this.metering,
      { name: 'find', className: query.className, operation },
      () => this.reader.findShown(query, shown, operation),
      ({ count }) => count,
    );
  }

  count(query: CountQuery, operation: OperationContext): Promise<number> {
    return metered(
      this.metering,
      { name: 'count', className: query.className, operation },
      () => this.reader.count(query, operation),
      noRows,
    );
  }

  aggregate(query: AggregateQuery, operation: OperationContext): Promise<ParseRow[]> {
    return metered(
      this.metering,
      { name: 'aggregate', className: query.className, operation },
      () => this.reader.aggregate(query, operation),
      rowsIn,
    );
  }

  /** Pairs count for nothing: there are also those of rows that the caller may not read, and the rows at both ends are counted. */
  related(query: RelatedQuery, operation: OperationContext): Promise<string[]> {
    return metered(
      this.metering,
      { name: 'related', className: query.className, operation },
      () => this.reader.related(query, operation),
      noRows,
    );
  }

  explain(query: CountQuery, operation: OperationContext): Promise<QueryPlan> {
    return metered(
      this.metering,
      { name: 'explain', className: query.className, operation },
      () => this.reader.explain(query, operation),
      noRows,
    );
  }
}

const hitsIn = (hits: readonly SearchHit[]): number => hits.length;

/** Searches through the wrapped searcher, in the turns of its principal, and reports each search to the meter of the call. */
export class MeteredSearcher extends RecordSearcher {
  constructor(
    private readonly searcher: RecordSearcher,
    private readonly metering: Metering,
  ) {
    super();
  }

  override forCall(call: StoreCall): RecordSearcher {
    return new MeteredSearcher(this.searcher.forCall(call), this.metering);
  }

  text(query: TextSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return metered(
      this.metering,
      { name: 'search', className: query.className, operation },
      () => this.searcher.text(query, operation),
      hitsIn,
    );
  }

  facets(query: FacetQuery, operation: OperationContext): Promise<FacetCounts> {
    return metered(
      this.metering,
      { name: 'facets', className: query.className, operation },
      () => this.searcher.facets(query, operation),
      () => 0,
    );
  }

  nearest(query: VectorSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return metered(
      this.metering,
      { name: 'nearest', className: query.className, operation },
      () => this.searcher.nearest(query, operation),
      hitsIn,
    );
  }
}

/** Writes through the wrapped writer, in the turns of its principal, and reports each operation to the meter of the call. */
export class MeteredWriter extends WrappedWriter {
  constructor(
    writer: RecordWriter,
    private readonly metering: Metering,
  ) {
    super(writer);
  }

  override forCall(call: StoreCall): RecordWriter {
    return new MeteredWriter(this.writer.forCall(call), this.metering);
  }

  protected around<T>(written: WrappedWrite, write: () => Promise<T>): Promise<T> {
    // Creating and updating return a row, deleting whether there was one.
    return metered(this.metering, written, write, (result) => (result && result !== true ? 1 : 0));
  }
}
