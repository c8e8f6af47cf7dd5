import type { Agent } from '#core';
import type { AgentScope, GovernedPipeline, Where } from '#policy';

/** A row in Parse REST JSON: objectId, ISO createdAt/updatedAt, `{ __type }` values. */
export type ParseRow = Record<string, unknown>;

/** What every database operation carries. */
export interface OperationContext {
  /** Milliseconds after which the database itself gives up. */
  readonly maxTimeMS: number;
  /** Seen in the database's operation list and profiler: tool and correlation id. */
  readonly comment: string;
  /** Ends the operation when the call ends. */
  readonly signal: AbortSignal;
  /** Whose share of the memory for answers it takes. Default: the service's own. */
  readonly principal?: string;
}

export interface SortKey {
  /** Wire name, may be dotted. */
  readonly field: string;
  readonly descending: boolean;
}

/** One pointer to resolve in place. A pointed-at row that `where` does not admit stays a bare pointer. */
export interface IncludePlan {
  /** Wire name of the pointer field on its parent. */
  readonly field: string;
  readonly targetClass: string;
  /** The target's injected predicates. */
  readonly where: Where;
  /** Wire names to return of the target; absent: all. */
  readonly keys?: readonly string[];
  readonly include: readonly IncludePlan[];
}

/** Which rows to read, and what of them. */
export interface FindQuery {
  /** Whose rows. */
  readonly className: string;
  /** Every constraint, those of the policy included; empty: all rows. */
  readonly where: Where;
  /** Wire names or dotted paths to return; absent: all. objectId, createdAt, updatedAt always come. */
  readonly keys?: readonly string[];
  /** Pointers to resolve in place. Default none. */
  readonly include?: readonly IncludePlan[];
  /** The first key decides first. Default: as the store likes. */
  readonly order?: readonly SortKey[];
  /** Rows to leave out at the beginning. Default 0. */
  readonly skip?: number;
  /** Rows at most. */
  readonly limit: number;
  /** Bytes of the answer at most; never more than the store reads for any. Default that. */
  readonly maxBytes?: number;
}

/** Which rows to count. */
export interface CountQuery {
  /** Whose rows. */
  readonly className: string;
  /** As in `FindQuery`. */
  readonly where: Where;
}

/** What a pipeline makes of the rows of a class. */
export interface AggregateQuery {
  /** Whose rows go in. */
  readonly className: string;
  /** Translated, checked and narrowed; to be run as it is. */
  readonly pipeline: GovernedPipeline;
  /** Joins between pointers and ids are turned into ones that match. Default true. */
  readonly rewriteLookups?: boolean;
}

/** The rows that a relation field of one row leads to. */
export interface RelatedQuery {
  /** Of the row that has the relation. */
  readonly className: string;
  /** Of the row that has the relation. */
  readonly objectId: string;
  /** Wire name of the relation. */
  readonly key: string;
  /** Ids at most. */
  readonly limit: number;
}

/** The winning plan of a query as the database reports it. */
export type QueryPlan = Readonly<Record<string, unknown>>;

/** On whose behalf, and for which tool, a store is asked. */
export interface StoreCall {
  /** Who asks. */
  readonly agent: Agent;
  /** What of each class this agent may use. */
  readonly scope: AgentScope;
  /** By name. */
  readonly tool: string;
}

/** The way a pipeline takes to the rows. */
export type PipelineRoute = 'mongo_direct' | 'parse_server';

/**
 * Reading rows, in Parse's words. A constraint may hold `{ $readableBy: { principals } }` or `$writableBy` beside fields: rows
 * whose rights name one of them, and rows without rights of their own. It applies exactly the constraints it is given and knows nothing of agents:
 * only `GovernedRecords` may hold one. Every method is one command to the database.
 * @throws StoreError
 */
export abstract class RecordReader {
  /** How this reader runs pipelines of the call it was made for. */
  get pipelineRoute(): PipelineRoute {
    return 'mongo_direct';
  }

  /** The same rows, read the way this call may read them. A store that does not ask who reads is its own answer. */
  forCall(_call: StoreCall): RecordReader {
    return this;
  }

  /** Rows that the query permits, in its order. */
  abstract find(query: FindQuery, operation: OperationContext): Promise<ParseRow[]>;
  /** How many rows the query permits. */
  abstract count(query: CountQuery, operation: OperationContext): Promise<number>;
  /** Values are converted to JSON (dates to ISO text); keys stay as the pipeline named them. */
  abstract aggregate(query: AggregateQuery, operation: OperationContext): Promise<ParseRow[]>;
  /** The ids a relation leads to, in no particular order; none for a row or a relation that is not there. */
  abstract related(query: RelatedQuery, operation: OperationContext): Promise<string[]>;
  /** How the database would answer; reads no row. */
  abstract explain(query: CountQuery, operation: OperationContext): Promise<QueryPlan>;
}

/**
 * Creating, changing and deleting rows. Separate, so that a reader cannot write.
 * @throws StoreError with `outcome: 'unknown'` when the write was sent and its outcome is not known
 */
export abstract class RecordWriter {
  /** As `RecordReader.forCall`. */
  forCall(_call: StoreCall): RecordWriter {
    return this;
  }

  /**
   * Whether `create` takes the id of the new row: then a second creation with it is refused as `duplicate`. Such a writer also
   * applies the `where` of `update` and `delete` in the write itself, and takes the time stamp that an update gives the row.
   */
  get takesObjectIds(): boolean {
    return false;
  }

  /** Stores a new row. @param objectId for a writer that takes ids. Default: a new one. @returns it, as it is stored */
  abstract create(
    className: string,
    fields: ParseRow,
    operation: OperationContext,
    objectId?: string,
  ): Promise<ParseRow>;
  /**
   * Applies `fields` (values or `{ __op }`) to the row that `where` admits.
   * @param updatedAt ISO time for a writer that takes ids. Default: now. @returns the stored row, or null when none
   */
  abstract update(
    className: string,
    objectId: string,
    fields: ParseRow,
    where: Where,
    operation: OperationContext,
    updatedAt?: string,
  ): Promise<ParseRow | null>;
  /** Whether there was such a row that `where` permits; it is gone. */
  abstract delete(
    className: string,
    objectId: string,
    where: Where,
    operation: OperationContext,
  ): Promise<boolean>;
}

/** What went wrong in a store. */
export type StoreErrorCode =
  | 'timeout'
  | 'unavailable'
  | 'duplicate'
  | 'invalid_query'
  /** Rows cannot be ordered by distance without one. */
  | 'geo_index_missing'
  | 'unknown_time_zone'
  | 'cancelled'
  | 'unsupported'
  | 'search_not_configured'
  | 'search_index_missing'
  | 'search_invalid'
  /** The store's own permissions say no. */
  | 'denied'
  /** The session that the store was asked with is none, or none any more. */
  | 'session_ended'
  /** Code of the application, a trigger say, refused it. */
  | 'rejected'
  /** The answer is larger than any that is read. */
  | 'too_large'
  /** Other answers fill the memory that there is for them; it will pass. */
  | 'busy'
  | 'failed';

/** Where an error arose. */
export type StoreName = 'the database' | 'Parse Server';

/** An error of a store. The driver's text is the `cause`, for the log alone. */
export class StoreError extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'StoreError';
  /** Where it arose. Default `the database`. */
  readonly store: StoreName;
  /** Of a write: whether it happened is not known. Absent: it did not. */
  readonly outcome?: 'unknown';
  constructor(
    /** Identifies the error for programs. */
    readonly code: StoreErrorCode,
    options?: { readonly cause?: unknown; readonly store?: StoreName; readonly outcome?: 'unknown' },
  ) {
    super(code, options);
    this.store = options?.store ?? 'the database';
    if (options?.outcome) this.outcome = options.outcome;
  }
}
