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

export interface TextSearchQuery extends RowSearch {
  readonly match: TextMatch;
  /** Wire path to show passages of. */
  readonly highlight?: string;
}

export interface VectorSearchQuery extends RowSearch {
  /** Wire name of the vector. */
  readonly field: string;
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
  /** Most frequent values to tell of a string facet. */
  readonly buckets?: number;
}

export interface FacetQuery {
  readonly className: string;
  readonly index: string;
  readonly match: TextMatch;
  readonly facets: ReadonlyMap<string, Facet>;
  /** Rows that count. Where it is empty the search process counts by itself. */
  readonly where: Where;
}

export interface Passage {
  /** Wire path. */
  readonly path: string;
  readonly texts: readonly { readonly value: string; readonly type: 'hit' | 'text' }[];
}

export interface SearchHit {
  readonly row: ParseRow;
  /** Higher is nearer; comparable within one answer. */
  readonly score: number;
  readonly highlights: readonly Passage[];
}

export interface FacetBucket {
  readonly _id: unknown;
  readonly count: number;
}

export interface FacetCounts {
  readonly total: number;
  readonly facets: ReadonlyMap<string, readonly FacetBucket[]>;
}

/**
 * Searching rows by words and by likeness, in Parse's words. As a reader it applies exactly the constraints it is given
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
