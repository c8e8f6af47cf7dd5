import { Refused, refusals } from '#agent';
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
import { NEEDS_DIRECT, type SessionWatch } from './data-routes.js';

export interface SearchRoutes {
  /** Null: MongoDB is not configured. */
  readonly direct: RecordSearcher | null;
  readonly sessions: SessionWatch;
}

/** The search of a deployment with a Parse Server, which has none itself: always direct, for sessions that still live. */
export class RoutedRecordSearcher extends RecordSearcher {
  constructor(
    private readonly routes: SearchRoutes,
    private readonly call: Pick<StoreCall, 'agent'> | null = null,
  ) {
    super();
  }

  override forCall(call: StoreCall): RecordSearcher {
    return new RoutedRecordSearcher(this.routes, call);
  }

  async text(query: TextSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return (await this.searcher()).text(query, operation);
  }

  async facets(query: FacetQuery, operation: OperationContext): Promise<FacetCounts> {
    return (await this.searcher()).facets(query, operation);
  }

  async nearest(query: VectorSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return (await this.searcher()).nearest(query, operation);
  }

  private async searcher(): Promise<RecordSearcher> {
    const { direct, sessions } = this.routes;
    if (!direct) throw new Refused(refusals.noRoute(NEEDS_DIRECT));
    const identity = this.call?.agent.identity;
    // MongoDB does not ask whether the session still exists.
    if (identity?.kind === 'sessionToken') await sessions.assertAlive(identity.token);
    return direct;
  }
}
