import {
  type FacetCounts,
  type FacetQuery,
  RecordSearcher,
  type SearchHit,
  type TextSearchQuery,
  type VectorSearchQuery,
} from '../record-search.js';
import type { OperationContext, StoreCall } from '../record-store.js';
import { metered, type Metering } from './metered.js';

const hitsIn = (hits: readonly SearchHit[]): number => hits.length;

/** Searches as the searcher it wraps, in the turns of its principal, and tells the meter of one call what each search took. */
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
      { name: 'search', className: query.className, signal: operation.signal },
      () => this.searcher.text(query, operation),
      hitsIn,
    );
  }

  facets(query: FacetQuery, operation: OperationContext): Promise<FacetCounts> {
    return metered(
      this.metering,
      { name: 'facets', className: query.className, signal: operation.signal },
      () => this.searcher.facets(query, operation),
      () => 0,
    );
  }

  nearest(query: VectorSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return metered(
      this.metering,
      { name: 'nearest', className: query.className, signal: operation.signal },
      () => this.searcher.nearest(query, operation),
      hitsIn,
    );
  }
}
