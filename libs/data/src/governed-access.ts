import type { Tier } from '#core';
import type { ClassPolicy, ClassSchema, FieldSchema, IndexSchema, ReadOperation } from '#policy';
import type { FacetCounts, SearchHit } from './record-search.js';
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
  /** The rows are few whatever the constraint, or were judged before: no collection-scan check. Default false. */
  readonly expectsScan?: boolean;
  /** Most rows that may be asked for, in place of 1000. Set by tools, never by callers. */
  readonly ceiling?: number;
  /** Also report whether more rows match than the limit. Default false. */
  readonly tellsMore?: boolean;
  /** Maximum number of rows in the answer; further ones, up to the limit, are only counted. Default: the limit. */
  readonly atMost?: number;
}

export interface RowPage {
  /** With `atMost` the first ones. */
  readonly rows: ParseRow[];
  /** Rows that were found. Absent: as many as there are. */
  readonly count?: number;
  /**
   * Rows of the order behind which the next page begins: more than were found where Cloud Code of a Parse Server removes some. Absent:
   * those that were found.
   */
  readonly passed?: number;
  /** Rows beyond these match. Absent unless requested. */
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
  /** Wire names of the columns that rows show in masked form or without a part. Not among `fields`. */
  readonly maskedColumns: readonly string[];
  /** Ways of reading its rows that permissions and tenant leave the agent; none: only what it looks like may be known. */
  readonly reads: ReadonlySet<ReadOperation>;
  /** Whether a read may go through the whole collection (`refuseCollscan`). */
  readonly scans: boolean;
  /** Tiers of declared methods that permissions leave the agent; what else such a method needs is asked elsewhere. */
  readonly methodTiers: ReadonlySet<Tier>;
}

/**
 * The only access of a tool to data, bound to one call. Every method runs class gate → field and query checks →
 * tenant, agent and canonical filters → store → redaction; none can be skipped, because nothing here holds ungoverned rows.
 * @throws Refused
 */
export interface GovernedRecords {
  /** Rows only; `page` also reports what was left out. */
  find(className: unknown, options?: FindOptions): Promise<ParseRow[]>;
  /** As `find`, with how many were found and whether there are more. */
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
  /**
   * The gates before any read of rows, for tools whose arguments are judged after them: class, then tenant.
   * @param operation the class permission that is asked for. Default `find`
   */
  admit(className: unknown, operation?: ReadOperation): Promise<GovernedClass>;
  /** Every class this agent may know, sorted by name. */
  classes(): Promise<readonly GovernedClass[]>;
  /**
   * A class with the fields that the agent may read.
   * @throws Refused as any class gate does; `invalid_argument` with suggestions for a class that does not exist
   */
  describe(className: unknown): Promise<GovernedClass>;
  /** Those over readable fields; another one would reveal that its field exists. @throws Refused as `describe` does */
  indexes(className: unknown): Promise<readonly IndexSchema[]>;
}

/** Arguments as callers wrote them: untrusted, judged inside. */
export interface TextSearchRequest {
  readonly query: string;
  /** Default: every readable field with text. */
  readonly fields?: readonly string[] | undefined;
  readonly highlightField?: string | undefined;
  /** Parse constraint on the rows found. */
  readonly filter?: unknown;
  readonly limit: number;
}

export interface AutocompleteRequest {
  readonly query: string;
  readonly field: string;
  readonly fuzzy: boolean;
  readonly limit: number;
}

export interface FacetRequest {
  /** Empty: every row. */
  readonly query: string;
  /** Name to `{ path, type, boundaries }`. */
  readonly facets: unknown;
  /** Rows to show beside the counts. */
  readonly limit: number;
}

export interface Completions {
  /** Different values of the field, best first. */
  readonly suggestions: readonly string[];
  readonly hits: readonly SearchHit[];
}

export interface CountedFacets extends FacetCounts {
  readonly hits: readonly SearchHit[];
}

/** Constraints of a vector search, on the fields that the policy lists for it. */
export interface VectorFilters {
  /** On the rows found. */
  readonly filter?: unknown;
  /** Inside the search, before rows are ranked. */
  readonly vectorFilter?: unknown;
}

export interface NearestRequest extends VectorFilters {
  readonly vector: readonly number[];
  readonly limit: number;
  /** Id of a row to leave out. */
  readonly except?: string;
}

/** Rows by the distance of their vectors, nearest first. */
export interface NearestRows {
  readonly hits: readonly SearchHit[];
  /**
   * Fewer rows than requested, and the index could not apply every filter before it ranked the rows: others, of which the filters
   * removed some, took the places.
   */
  readonly mayLackRows: boolean;
}

/** A class that this agent may search by vector: its gates have passed. */
export interface SimilaritySearch {
  readonly className: string;
  /** Wire name of the vector. */
  readonly field: string;
  /** Texts that the vector stands for and the agent may read, the first one first. */
  readonly textFields: readonly string[];
  /** The wire name of any spelling of a field. */
  wireName(field: string): string;
  /** Refuses what `nearest` would refuse of these, reading nothing. */
  check(filters: VectorFilters): void;
  /** The stored vector of a row. @throws Refused `parse_error` when there is no such row for this agent */
  readVector(objectId: string): Promise<readonly number[]>;
  nearest(request: NearestRequest): Promise<NearestRows>;
}

/**
 * The access of a tool to full-text and vector search, bound to one call. As for `GovernedRecords`: class gate → fields →
 * tenant, agent and canonical filters → search → redaction, and none can be skipped.
 * @throws Refused
 */
export interface GovernedSearch {
  /** Rows by words, best first. */
  text(className: unknown, request: TextSearchRequest): Promise<SearchHit[]>;
  /** What a beginning may become. */
  autocomplete(className: unknown, request: AutocompleteRequest): Promise<Completions>;
  /** Counts per value or range. @throws Refused `atlas_facet_filter_unsafe` where a filter could not be carried into the counts */
  facets(className: unknown, request: FacetRequest): Promise<CountedFacets>;
  /** Search by meaning, once it is known that the class permits it. */
  likeness(className: unknown): Promise<SimilaritySearch>;
}

/** A write as a tool would make it. */
export type ProposedWrite =
  | { readonly operation: 'create'; readonly className: unknown; readonly fields: unknown }
  | {
      readonly operation: 'update';
      readonly className: unknown;
      readonly objectId: unknown;
      readonly fields: unknown;
    }
  | { readonly operation: 'delete'; readonly className: unknown; readonly objectId: unknown };

/** What a write would do. */
export interface JudgedWrite {
  readonly className: string;
  readonly objectId: string | null;
  /** What is stored, as far as this agent may read it; null for a new row, or when it may read none of it. */
  readonly before: ParseRow | null;
  /** Values and `{ __op }` by wire name; null when a row is removed. */
  readonly fields: ParseRow | null;
}

/** How a write is made. */
export interface WriteOptions {
  /**
   * Names this write among those of the caller: 1 to 128 letters, digits and `. _ : -`, remembered for a day. The same write
   * under the same key is done once and answered each time; another write under it is refused. Default: every call writes.
   */
  readonly idempotencyKey?: unknown;
}

/**
 * The only access of a tool to changing rows, bound to one call. Every method runs class gate → class permissions → tenant
 * → ids → field rules → store, and gives back what this agent may read of the row. A refused write changes nothing.
 * @throws Refused
 */
export interface GovernedWrites {
  /** @returns the stored row as the agent may read it */
  create(className: unknown, fields: unknown, options?: WriteOptions): Promise<ParseRow>;
  /** `fields` are values or `{ __op }`. @throws Refused `parse_error` when there is no such row for this agent */
  update(className: unknown, objectId: unknown, fields: unknown, options?: WriteOptions): Promise<ParseRow>;
  /** @throws Refused `parse_error` when there is no such row for this agent */
  delete(className: unknown, objectId: unknown, options?: WriteOptions): Promise<void>;
  /** The gates before a write reads its fields, for code that writes later: class, class permission, tenant. */
  admit(className: unknown, operation: ProposedWrite['operation']): Promise<void>;
  /** Runs every check of a write and writes nothing. @throws Refused as the write itself would */
  judge(write: ProposedWrite): Promise<JudgedWrite>;
}

/** The only access of a tool to creating and deleting classes, bound to one call; for agents with the master key. */
export interface GovernedClassWrites {
  /** @returns the fields that were declared, as stored */
  createClass(className: unknown, fields?: unknown): Promise<ReadonlyMap<string, FieldSchema>>;
  /** @throws Refused `invalid_argument` while the class has rows */
  deleteClass(className: unknown): Promise<void>;
}

/** What running a declared method needs of the class it belongs to, bound to one call. */
export interface GovernedMethods {
  /** The class gate. @returns the canonical name. @throws Refused */
  enter(className: unknown): Promise<string>;
  /** @throws Refused for a text that is the id of no row of the class, whatever rows there are */
  checkId(className: string, objectId: string): Promise<void>;
  /**
   * Class permissions of a method's tier: readonly asks `find`, write `update`, admin `delete`. What the method then writes passes
   * the rules of any write. @throws Refused `clp_denied`
   */
  permit(className: string, permission: Tier): Promise<void>;
  /** For methods above readonly; what they write goes through the same rules as any write. */
  writes(): GovernedWrites;
  /** A method's result as the agent may see it: objects cut to their class's allowlist and redacted, at any depth. */
  present(result: unknown): Promise<unknown>;
}
