import type { DataMeter } from '#agent';
import {
  type FacetCounts,
  type FacetQuery,
  RecordSearcher,
  type SearchHit,
  type TextSearchQuery,
  type VectorSearchQuery,
} from '../record-search.js';
import type { OperationContext, StoreCall } from '../record-store.js';
import { metered } from './metered.js';

const hitsIn = (hits: readonly SearchHit[]): number => hits.length;

/** Searches as the searcher it wraps, and tells the meter of one call what each search took. */
export class MeteredSearcher extends RecordSearcher {
  constructor(
    private readonly searcher: RecordSearcher,
    private readonly meter: DataMeter,
  ) {
    super();
  }

  override forCall(call: StoreCall): RecordSearcher {
    return new MeteredSearcher(this.searcher.forCall(call), this.meter);
  }

  text(query: TextSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return metered(
      this.meter,
      { name: 'search', className: query.className },
      () => this.searcher.text(query, operation),
      hitsIn,
    );
  }

  facets(query: FacetQuery, operation: OperationContext): Promise<FacetCounts> {
    return metered(
      this.meter,
      { name: 'facets', className: query.className },
      () => this.searcher.facets(query, operation),
      () => 0,
    );
  }

  nearest(query: VectorSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return metered(
      this.meter,
      { name: 'nearest', className: query.className },
      () => this.searcher.nearest(query, operation),
      hitsIn,
    );
  }
}
