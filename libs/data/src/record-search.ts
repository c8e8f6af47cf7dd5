import type { Where } from '#policy';
import type { OperationContext, ParseRow, StoreCall } from './record-store.js';

/** What full-text search looks for. Paths are wire names. */
export type TextMatch =
  | { readonly kind: 'text'; readonly query: string; readonly paths: readonly string[] }
  | {
      readonly kind: 'autocomplete';
      readonly query: string;
      readonly path: string;
      /** Forgives one letter. */
      readonly fuzzy: boolean;
    }
  | { readonly kind: 'everything' };

/** What every search has in common. */
interface RowSearch {
  readonly className: string;
  /** Name of the search index. */
  readonly index: string;
  /** Applied to what was found, before rows are counted to the limit. */
  readonly where: Where;
  /** As in `FindQuery`. */
  readonly keys?: readonly string[];
  readonly limit: number;
}

/** Rows by words. */
export interface TextSearchQuery extends RowSearch {
  /** What to look for, and where. */
  readonly match: TextMatch;
  /** Wire path to show passages of. */
  readonly highlight?: string;
}

/** Rows near a vector. */
export interface VectorSearchQuery extends RowSearch {
  /** Wire name of the vector. */
  readonly field: string;
  /** As long as the vectors of the index. */
  readonly vector: readonly number[];
  /** Applied inside the search, on fields that the vector index can filter on. */
  readonly filter: Where;
  /** Rows the search itself gives, of which `where` leaves some. */
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

/** What to count, of which rows. */
export interface FacetQuery {
  /** Of the rows. */
  readonly className: string;
  /** Name of the search index. */
  readonly index: string;
  /** What a row must have to count. */
  readonly match: TextMatch;
  /** What to count by, under names that the answer uses again. */
  readonly facets: ReadonlyMap<string, Facet>;
  /** Rows that count. Where it is empty the search process counts by itself. */
  readonly where: Where;
}

export interface Passage {
  /** Wire path. */
  readonly path: string;
  readonly texts: readonly { readonly value: string; readonly type: 'hit' | 'text' }[];
}

/** One row that was found. */
export interface SearchHit {
  /** What was asked for of it. */
  readonly row: ParseRow;
  /** Higher is nearer; comparable within one answer. */
  readonly score: number;
  /** Where the words were found; empty unless it was asked for. */
  readonly highlights: readonly Passage[];
}

export interface FacetBucket {
  readonly _id: unknown;
  readonly count: number;
}

/** What a `FacetQuery` counted. */
export interface FacetCounts {
  /** All rows that matched. */
  readonly total: number;
  /** By the names of the query. */
  readonly facets: ReadonlyMap<string, readonly FacetBucket[]>;
}

/**
 * Searching rows by words and by vectors, in Parse's terms. As a reader it applies exactly the constraints it is given
 * and knows nothing of agents. Every method is one command to the database, best rows first.
 * @throws StoreError `search_not_configured` where the database has no search; `search_index_missing`, `search_invalid`
 */
export abstract class RecordSearcher {
  /** As `RecordReader.forCall`. */
  forCall(_call: StoreCall): RecordSearcher {
    return this;
  }

  /** Rows by words, best first. */
  abstract text(query: TextSearchQuery, operation: OperationContext): Promise<SearchHit[]>;
  /** Counts per value or range. */
  abstract facets(query: FacetQuery, operation: OperationContext): Promise<FacetCounts>;
  /** Rows by the distance of their vectors, nearest first. */
  abstract nearest(query: VectorSearchQuery, operation: OperationContext): Promise<SearchHit[]>;
}
