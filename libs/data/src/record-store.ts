import type { Abortable, Agent } from '#core';
import type { AgentScope, GovernedPipeline, Where } from '#policy';

/** A row in Parse REST JSON: objectId, ISO createdAt/updatedAt, `{ __type }` values. */
export type ParseRow = Record<string, unknown>;

/** The options that every database operation carries. */
export interface OperationContext extends Abortable {
  /** Milliseconds after which the database itself aborts the operation. */
  readonly maxTimeMS: number;
  /** Shown in the database's operation list and profiler: tool and correlation id. */
  readonly comment: string;
  /** Aborts the operation when the call ends. */
  readonly signal: AbortSignal;
  /** The principal whose share of the memory for answers is used. Default: the service itself. */
  readonly principal?: string;
  /** Whose database is used where each tenant has its own. Default: that of none. */
  readonly tenant?: string | number | null;
}

export interface SortKey {
  /** Wire name, may be dotted. */
  readonly field: string;
  readonly descending: boolean;
}

/** One pointer to resolve in place. A referenced row that `where` does not admit stays a bare pointer. */
export interface IncludePlan {
  /** Wire name of the pointer field on its parent. */
  readonly field: string;
  readonly targetClass: string;
  /** The predicates of the target. */
  readonly where: Where;
  /** Wire names to return of the target; absent: all. */
  readonly keys?: readonly string[];
  readonly include: readonly IncludePlan[];
}

/** The rows to read, and their fields. */
export interface FindQuery {
  /** Whose rows. */
  readonly className: string;
  /** Every constraint, those of the policy included; empty: all rows. */
  readonly where: Where;
  /** Wire names or dotted paths to return; absent: all. objectId, createdAt, updatedAt always come. */
  readonly keys?: readonly string[];
  /** Pointers to resolve in place. Default none. */
  readonly include?: readonly IncludePlan[];
  /** The first key takes precedence. Default: the order of the store. */
  readonly order?: readonly SortKey[];
  /** Rows to skip. Default 0. */
  readonly skip?: number;
  /** Maximum number of rows. */
  readonly limit: number;
  /** Maximum bytes of the answer; never more than the store reads for any answer. Default: that limit. */
  readonly maxBytes?: number;
}

/** The rows to read where the answer shows only the first ones of those that it finds. */
export interface ShownQuery extends FindQuery {
  /** Maximum number of rows to read; further ones are only counted. */
  readonly atMost: number;
}

/** The first of the rows that a query found. */
export interface FirstRows {
  /** Rows that the query found; fewer may be read. */
  readonly count: number;
  readonly rows: readonly ParseRow[];
  /** Rows that match within what the query asks for, those included that Cloud Code of a Parse Server removes. Default: `count`. */
  readonly passed?: number;
}

/** The rows to count. */
export interface CountQuery {
  /** Whose rows. */
  readonly className: string;
  /** As in `FindQuery`. */
  readonly where: Where;
}

/** The rows whose plan is asked for. */
export type PlannedQuery = CountQuery & Pick<FindQuery, 'order'>;

/** A pipeline over the rows of a class. */
export interface AggregateQuery {
  /** The class of the input rows. */
  readonly className: string;
  /** Translated, checked and narrowed; run unchanged. */
  readonly pipeline: GovernedPipeline;
  /** Joins between pointers and ids are turned into ones that match. Default true. */
  readonly rewriteLookups?: boolean;
}

/** One direction of a relation. */
export type RelatedQuery = {
  /** The class of the rows that have the relation. */
  readonly className: string;
  /** Wire name of the relation. */
  readonly key: string;
  /** Maximum number of ids. */
  readonly limit: number;
} & (
  | {
      /** The id of the row whose members are requested. */
      readonly objectId: string;
    }
  | {
      /** Ids of members: the rows that have one of them in the relation are requested. */
      readonly members: readonly string[];
    }
);

/** The winning plan of a query as the database reports it. */
export type QueryPlan = Readonly<Record<string, unknown>>;

/** The caller and the tool of a store operation. */
export interface StoreCall {
  /** The agent that calls. */
  readonly agent: Agent;
  /** The parts of each class that this agent may use. */
  readonly scope: AgentScope;
  /** By name. */
  readonly tool: string;
}

/** On whose behalf a store runs an operation: that of one call, or that of the operator, whom no rule limits. */
export type Caller = StoreCall | 'operator';

export type PipelineRoute = 'mongo_direct' | 'parse_server';

/** The rows of a pipeline, and how it was run. */
export interface AggregatedRows {
  readonly rows: readonly ParseRow[];
  readonly route: PipelineRoute;
}

/** The operations of a port by kind: what is asked, and the answer. */
export type Operations<P> = {
  [K in keyof P]: { readonly asked: { readonly className: string }; readonly answer: unknown };
};

/** One operation of a port, as data. */
export type StoreOperation<P extends Operations<P>, K extends keyof P = keyof P> = {
  [Kind in K]: P[Kind]['asked'] & { readonly kind: Kind };
}[K];

/**
 * A port to a store. Wrappers are functions from a store to a store: a decision about an operation is made from its data.
 * @throws StoreError
 */
export interface Store<P extends Operations<P>> {
  run<K extends keyof P>(
    operation: StoreOperation<P, K>,
    context: OperationContext,
    caller: Caller,
  ): Promise<P[K]['answer']>;
}

/** How a port answers operations of each kind. */
export type Handlers<P extends Operations<P>> = {
  [K in keyof P]: (
    operation: StoreOperation<P, K>,
    context: OperationContext,
    caller: Caller,
  ) => Promise<P[K]['answer']>;
};

/** The store, with answers of its own to operations of some kinds. */
export function overridden<P extends Operations<P>>(store: Store<P>, own: Partial<Handlers<P>>): Store<P> {
  return {
    run: (operation, context, caller) =>
      own[operation.kind]?.(operation, context, caller) ?? store.run(operation, context, caller),
  };
}

/** The operations that read rows. */
export interface Reads {
  /** Rows that the query permits, in its order. */
  find: { readonly asked: FindQuery; readonly answer: ParseRow[] };
  /** The first of those rows, and how many there are. */
  findShown: { readonly asked: ShownQuery; readonly answer: FirstRows };
  /** How many rows the query permits. */
  count: { readonly asked: CountQuery; readonly answer: number };
  aggregate: { readonly asked: AggregateQuery; readonly answer: AggregatedRows };
  /** Ids of rows, in no particular order and possibly repeated. */
  related: { readonly asked: RelatedQuery; readonly answer: string[] };
  /** The query plan of the database; reads no row. */
  explain: { readonly asked: PlannedQuery; readonly answer: QueryPlan };
}

/** The port that rows are read from. It has no information about agents: only `GovernedRecords` may hold one. */
export abstract class ReadStore implements Store<Reads> {
  abstract run<K extends keyof Reads>(
    operation: StoreOperation<Reads, K>,
    context: OperationContext,
    caller: Caller,
  ): Promise<Reads[K]['answer']>;
}

/** A row to store. */
interface CreateRow {
  readonly className: string;
  readonly fields: ParseRow;
  /** For a store that takes ids. Default: a new one. */
  readonly objectId?: string | undefined;
}

/** A change of the row that `where` admits. */
interface UpdateRow {
  readonly className: string;
  readonly objectId: string;
  /** Values or `{ __op }`. */
  readonly fields: ParseRow;
  readonly where: Where;
  /** ISO time for a store that takes ids. Default: now. */
  readonly updatedAt?: string | undefined;
}

/** The row to delete, if `where` admits it. */
interface DeleteRow {
  readonly className: string;
  readonly objectId: string;
  readonly where: Where;
}

/** The operations that write rows. */
export interface Writes {
  /** The stored row. */
  create: { readonly asked: CreateRow; readonly answer: ParseRow };
  /** The stored row, or null when none. */
  update: { readonly asked: UpdateRow; readonly answer: ParseRow | null };
  /** Whether there was such a row. */
  delete: { readonly asked: DeleteRow; readonly answer: boolean };
}

/** The port that rows are written through: a separate one, so that who reads cannot write. */
export abstract class WriteStore implements Store<Writes> {
  /**
   * Whether `create` accepts the id of the new row: then a second creation with it is refused as `duplicate`. Such a writer
   * also applies the `where` of `update` and `delete` in the write itself, and sets the time stamp that an update contains.
   */
  get takesObjectIds(): boolean {
    return false;
  }

  /** Whether what it changes is recorded with the row before: nobody has to look at the row before the write. */
  get judgesRows(): boolean {
    return false;
  }

  /**
   * The id of a new row of a class that a text determines, for a writer that accepts ids: the same id for the same text.
   * Default: the text itself. @throws StoreError `unsupported` where new rows cannot get ids here
   */
  idFor(_className: string, text: string, _operation: OperationContext): Promise<string> {
    return Promise.resolve(text);
  }

  abstract run<K extends keyof Writes>(
    operation: StoreOperation<Writes, K>,
    context: OperationContext,
    caller: Caller,
  ): Promise<Writes[K]['answer']>;
}

/** The error code of a store. */
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
  /** Code of the application, a trigger say, or the validator of a collection refused it. */
  | 'rejected'
  /** The answer is larger than any that is read. */
  | 'too_large'
  /** Other answers fill the memory that there is for them; it will pass. */
  | 'busy'
  | 'failed';

/** Where an error arose. */
export type StoreName = 'the database' | 'Parse Server';

/**
 * The one advice for a row that a rule of the database refuses, where the rule may depend on rows that the caller may not read,
 * or on columns.
 */
export const ROW_REFUSED =
  'the database refused the row: send every column that the class requires, with values that it permits';

/** An error of a store. The driver's text is the `cause`, for the log only. */
export class StoreError extends Error {
  /** A constant, so that it is the same in two copies of the package. */
  override readonly name = 'StoreError';
  /** Where it arose. Default `the database`. */
  readonly store: StoreName;
  /** Of a write: whether it was applied is not known. Absent: it was not applied. */
  readonly outcome?: 'unknown';
  /** What the caller can do instead; contains nothing that a caller may not see. */
  readonly advice?: string;
  constructor(
    /** Identifies the error for programs. */
    readonly code: StoreErrorCode,
    options?: {
      readonly cause?: unknown;
      readonly store?: StoreName;
      readonly outcome?: 'unknown';
      readonly advice?: string;
    },
  ) {
    super(code, options);
    this.store = options?.store ?? 'the database';
    if (options?.outcome) this.outcome = options.outcome;
    if (options?.advice !== undefined) this.advice = options.advice;
  }
}

/** Whether a write that failed may have been applied. */
export const isOutcomeUnknown = (error: unknown): boolean =>
  error instanceof StoreError && error.outcome === 'unknown';
