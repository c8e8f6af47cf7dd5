import type { Where } from '#policy';
import type { Caller, Handlers, OperationContext, ParseRow, Store, StoreOperation } from './record-store.js';

/** The search text and options of a full-text search. Paths are wire names. */
export type TextMatch =
  | { readonly kind: 'text'; readonly query: string; readonly paths: readonly string[] }
  | {
      readonly kind: 'autocomplete';
      readonly query: string;
      readonly path: string;
      /** Permits one differing letter. */
      readonly fuzzy: boolean;
    }
  | { readonly kind: 'everything' };

/** The members that every search has. */
interface RowSearch {
  readonly className: string;
  /** Name of the search index. */
  readonly index: string;
  /** Applied to the found rows, before the limit is applied. */
  readonly where: Where;
  /** As in `FindQuery`. */
  readonly keys?: readonly string[];
  readonly limit: number;
}

/** Rows by words. */
export interface TextSearchQuery extends RowSearch {
  /** The search text and its paths. */
  readonly match: TextMatch;
  /** Wire path whose passages are returned. */
  readonly highlight?: string;
  /**
   * Whether the order may depend on the other rows of the index, such as on how many contain a word. Default: it depends on
   * each row alone, by how many words of the query it contains.
   */
  readonly ranksByIndex?: boolean;
}

/** Rows near a vector. */
export interface VectorSearchQuery extends RowSearch {
  /** Wire name of the vector. */
  readonly field: string;
  /** Must be as long as the vectors of the index. */
  readonly vector: readonly number[];
  /** Applied inside the search, on fields that the vector index can filter on. */
  readonly filter: Where;
  /** Rows that the search itself returns, of which `where` removes some. */
  readonly candidates: number;
}

export interface Facet {
  readonly type: 'string' | 'number' | 'date';
  /** Wire path. */
  readonly path: string;
  /** Numbers, or dates as ISO text; of facets over numbers and dates. */
  readonly boundaries?: readonly (number | string)[];
  /** Most frequent values to return of a string facet. */
  readonly buckets?: number;
}

/** The facets to count, and the rows they are counted over. */
export interface FacetQuery {
  /** Of the rows. */
  readonly className: string;
  /** Name of the search index. */
  readonly index: string;
  /** What a row must contain to be counted. */
  readonly match: TextMatch;
  /** The facets by name; the result uses the same names. */
  readonly facets: ReadonlyMap<string, Facet>;
  /** Constraint on the counted rows. Where it is empty the search process counts by itself. */
  readonly where: Where;
}

export interface Passage {
  /** Wire path. */
  readonly path: string;
  readonly texts: readonly { readonly value: string; readonly type: 'hit' | 'text' }[];
}

/** One row that was found. */
export interface SearchHit {
  /** The requested fields of the row. */
  readonly row: ParseRow;
  /** Higher is nearer; comparable within one answer. Null: withheld, because it depends on rows that the caller may not read. */
  readonly score: number | null;
  /** The passages that contain the words; empty unless requested. */
  readonly highlights: readonly Passage[];
}

export interface FacetBucket {
  readonly _id: unknown;
  readonly count: number;
}

/** The result of a `FacetQuery`. */
export interface FacetCounts {
  /** All rows that matched. */
  readonly total: number;
  /** By the names of the query. */
  readonly facets: ReadonlyMap<string, readonly FacetBucket[]>;
}

/** The operations that search rows. */
export interface Searches {
  /** Rows by words, best first. */
  text: { readonly asked: TextSearchQuery; readonly answer: SearchHit[] };
  /** Counts per value or range. */
  facets: { readonly asked: FacetQuery; readonly answer: FacetCounts };
  /** Rows by the distance of their vectors, nearest first. */
  nearest: { readonly asked: VectorSearchQuery; readonly answer: SearchHit[] };
}

/** The port that rows are searched through. It has no information about agents: only governed access may hold one. */
export abstract class SearchStore implements Store<Searches> {
  /** Whether the database can search; null: not known, which counts as yes. Only tools that can work are listed. */
  canSearch(): boolean | null | Promise<boolean | null> {
    return null;
  }

  abstract run<K extends keyof Searches>(
    operation: StoreOperation<Searches, K>,
    context: OperationContext,
    caller: Caller,
  ): Promise<Searches[K]['answer']>;
}

/**
 * Searches rows by words and by vectors, in Parse's terms, one method for each kind of operation. It applies exactly the given
 * constraints. Every method is one command to the database, best rows first. A searcher that depends on the caller overrides
 * `run`.
 * @throws StoreError `search_not_configured` where the database has no search; `search_index_missing`, `search_invalid`
 */
export abstract class RecordSearcher extends SearchStore {
  /** Runs an operation by the method of its kind. */
  run<K extends keyof Searches>(
    operation: StoreOperation<Searches, K>,
    context: OperationContext,
    caller: Caller,
  ): Promise<Searches[K]['answer']> {
    return (this as Handlers<Searches>)[operation.kind](operation, context, caller);
  }

  /** Rows by words, best first. */
  abstract text(query: TextSearchQuery, operation: OperationContext): Promise<SearchHit[]>;

  /** Counts per value or range. */
  abstract facets(query: FacetQuery, operation: OperationContext): Promise<FacetCounts>;

  /** Rows by the distance of their vectors, nearest first. */
  abstract nearest(query: VectorSearchQuery, operation: OperationContext): Promise<SearchHit[]>;
}
