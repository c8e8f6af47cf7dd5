import type { Tier } from '#agent';
import type { ClassPolicy, ClassSchema, IndexSchema, ReadOperation } from '#policy';
import type { ParseRow, PipelineRoute, QueryPlan } from './record-store.js';

export interface FindOptions {
  /** Parse constraint as the caller wrote it: untrusted, translated and checked inside. */
  readonly where?: unknown;
  readonly limit?: number;
  readonly skip?: number;
  /** `"-createdAt,title"`. */
  readonly order?: unknown;
  /** An object id: the rows behind it, in the order of ids and in no other; `''` begins. For walking a class in parts. */
  readonly after?: string;
  readonly keys?: unknown;
  readonly include?: unknown;
  /** Only `false` switches the class's canonical filter off. */
  readonly applyCanonicalFilter?: unknown;
  /** The tool reads much of the class on purpose (samples, exports): no collection-scan check. Default false. */
  readonly expectsScan?: boolean;
  /** Most rows that may be asked for, in place of 1000. Set by tools, never by callers. */
  readonly ceiling?: number;
  /** Also tell whether more rows match than were asked for. Default false. */
  readonly tellsMore?: boolean;
}

export interface RowPage {
  readonly rows: ParseRow[];
  /** Rows beyond these match. Absent when nobody asked. */
  readonly more?: boolean;
  /** Per included pointer, the large fields that were left out. Absent when no pointer was auto-projected. */
  readonly truncatedIncludeFields?: Readonly<Record<string, readonly string[]>>;
}

export interface AggregateOptions {
  /** Parse constraint on the rows the pipeline starts from, as the caller wrote it; obeys what a query's `where` obeys. */
  readonly where?: unknown;
  readonly applyCanonicalFilter?: unknown;
  readonly rewriteLookups?: boolean;
  /** Rows appended as a last `$limit` when the caller's pipeline ends in neither `$limit` nor `$count`. */
  readonly autoLimit?: number;
  /** Rows returned at most, whatever the caller's pipeline ends in. Default: no bound. */
  readonly atMost?: number;
  /** As in `FindOptions`. */
  readonly expectsScan?: boolean;
}

export interface AggregateResult {
  readonly rows: ParseRow[];
  readonly route: PipelineRoute;
  readonly autoLimited: boolean;
}

/** A class as this agent may know it. */
export interface GovernedClass {
  readonly className: string;
  readonly schema: ClassSchema;
  readonly policy: ClassPolicy;
  /** Readable wire names in schema order, the always-kept three included. */
  readonly fields: readonly string[];
  /** Path → what is done with it, in words: masked fields the agent may know of. Not among `fields`. */
  readonly masks: ReadonlyMap<string, string>;
  /** Ways of reading its rows that permissions and tenant leave the agent; none: only what it looks like may be known. */
  readonly reads: ReadonlySet<ReadOperation>;
  /** Tiers of declared methods that permissions leave the agent; what else such a method needs is asked elsewhere. */
  readonly methodTiers: ReadonlySet<Tier>;
}

/**
 * The only door from a tool to data, bound to one call. Every method runs class gate → field and query checks →
 * tenant, agent and canonical filters → store → redaction; none can be skipped, because nothing here holds ungoverned rows.
 * @throws Refused
 */
export interface GovernedRecords {
  /** Rows only; `page` also tells what was left out. */
  find(className: unknown, options?: FindOptions): Promise<ParseRow[]>;
  /** As `find`, with whether there are more. */
  page(className: unknown, options?: FindOptions): Promise<RowPage>;
  /** How many rows of a class the agent may read and the filter permits. */
  count(className: unknown, options?: Pick<FindOptions, 'where' | 'applyCanonicalFilter'>): Promise<number>;
  /** One row, as a page of one. @throws Refused `parse_error` when there is no such row for this agent */
  get(
    className: unknown,
    objectId: unknown,
    options?: Pick<FindOptions, 'keys' | 'include'>,
  ): Promise<RowPage>;
  /** Rows in no particular order; ids not found are simply absent. */
  getMany(
    className: unknown,
    objectIds: readonly string[],
    options?: Pick<FindOptions, 'keys' | 'include'>,
  ): Promise<RowPage>;
  /** The newest rows. */
  samples(className: unknown, limit: number): Promise<ParseRow[]>;
  /** Runs a pipeline, narrowed to what the agent may read. */
  aggregate(className: unknown, pipeline: unknown, options?: AggregateOptions): Promise<AggregateResult>;
  /** Refuses what `aggregate` would refuse, without reading a row or asking for a plan. */
  checkAggregate(
    className: unknown,
    pipeline: unknown,
    options?: Pick<AggregateOptions, 'where'>,
  ): Promise<void>;
  /**
   * How the database would find the rows: stages, and the indexes that the caller's own constraint explains. With
   * `exposeExplain` the whole plan, operator's predicates included, internal columns never.
   */
  explain(className: unknown, options?: Pick<FindOptions, 'where'>): Promise<QueryPlan>;
  /** The gates before any read of rows, for tools whose arguments are judged after them: class, then tenant. */
  admit(className: unknown): Promise<GovernedClass>;
  /** Every class this agent may know, sorted by name. */
  classes(): Promise<readonly GovernedClass[]>;
  /**
   * A class with the fields that the agent may read.
   * @throws Refused as any class gate does; `invalid_argument` with suggestions for a class that does not exist
   */
  describe(className: unknown): Promise<GovernedClass>;
  /** Those over readable fields; another one would tell that its field exists. @throws Refused as `describe` does */
  indexes(className: unknown): Promise<readonly IndexSchema[]>;
}
