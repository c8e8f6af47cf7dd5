import {
  type FacetCounts,
  type FacetQuery,
  type OperationContext,
  RecordSearcher,
  type SearchHit,
  type StoreCall,
  type TextSearchQuery,
  type VectorSearchQuery,
} from '#data';
import { comparable, cut, isAdmitted } from './checked-rows.js';

/** As `CheckedReader`, for a searcher that the application bound. */
export class CheckedSearcher extends RecordSearcher {
  constructor(private readonly bound: RecordSearcher) {
    super();
  }

  override forCall(call: StoreCall): RecordSearcher {
    const own = this.bound.forCall(call);
    return own === this.bound ? this : new CheckedSearcher(own);
  }

  async text(query: TextSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    const hits = await this.bound.text({ ...query, ...comparable(query) }, operation);
    return held(hits, query);
  }

  async nearest(query: VectorSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    const hits = await this.bound.nearest({ ...query, ...comparable(query) }, operation);
    return held(hits, query);
  }

  facets(query: FacetQuery, operation: OperationContext): Promise<FacetCounts> {
    return this.bound.facets(query, operation);
  }
}

type Searched = Pick<TextSearchQuery, 'where' | 'keys' | 'limit' | 'highlight'>;

/** Passages come of the one column that was asked for. */
function held(hits: readonly SearchHit[], query: Searched): SearchHit[] {
  return hits
    .filter(({ row }) => isAdmitted(row, query))
    .slice(0, query.limit)
    .map(({ row, score, highlights }) => ({
      row: cut(row, query),
      score,
      highlights: highlights.filter(({ path }) => path === query.highlight),
    }));
}
