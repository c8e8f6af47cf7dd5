import {
  type AggregateQuery,
  type CountQuery,
  type FindQuery,
  type OperationContext,
  type ParseRow,
  type PipelineRoute,
  type QueryPlan,
  RecordReader,
  type RelatedQuery,
  type StoreCall,
} from '#data';
import { credentialsOf } from '../connection/parse-credentials.js';
import { chosenRoute, type DataRoutes, operatorReader, pipelineRouteOf, withSession } from './data-routes.js';
import { postureOf, type Route, type RoutedOperation } from './route-table.js';
import { canBeAsked, countAgrees, serverAgrees } from './server-agreement.js';

/**
 * The reader of a deployment with a Parse Server. As it stands it reads with the operator's authority; `forCall` gives the
 * reader of one call, which goes the way the route table names.
 */
export class RoutedRecordReader extends RecordReader {
  constructor(private readonly routes: DataRoutes) {
    super();
  }

  override forCall(call: StoreCall): RecordReader {
    return new CallReader(this.routes, call);
  }

  async find(query: FindQuery, operation: OperationContext): Promise<ParseRow[]> {
    return operatorReader(this.routes).find(query, operation);
  }

  async count(query: CountQuery, operation: OperationContext): Promise<number> {
    return operatorReader(this.routes).count(query, operation);
  }

  async aggregate(query: AggregateQuery, operation: OperationContext): Promise<ParseRow[]> {
    return operatorReader(this.routes).aggregate(query, operation);
  }

  async related(query: RelatedQuery, operation: OperationContext): Promise<string[]> {
    return operatorReader(this.routes).related(query, operation);
  }

  async explain(query: CountQuery, operation: OperationContext): Promise<QueryPlan> {
    return operatorReader(this.routes).explain(query, operation);
  }
}

/** Reads on behalf of one call. */
class CallReader extends RecordReader {
  constructor(
    private readonly routes: DataRoutes,
    private readonly call: StoreCall,
  ) {
    super();
  }

  override get pipelineRoute(): PipelineRoute {
    const route = chosenRoute(pipelineRouteOf(this.call), this.call, (one) => this.isOpen(one));
    return route === 'direct' ? 'mongo_direct' : 'parse_server';
  }

  find(query: FindQuery, operation: OperationContext): Promise<ParseRow[]> {
    const suits = () => canBeAsked(query) && (!this.serverJudges || serverAgrees(query, this.call.scope));
    return this.along('rows', suits, (reader) => reader.find(query, operation));
  }

  count(query: CountQuery, operation: OperationContext): Promise<number> {
    const suits = () => canBeAsked(query) && (!this.serverJudges || countAgrees(query, this.call.scope));
    return this.along('rows', suits, (reader) => reader.count(query, operation));
  }

  aggregate(query: AggregateQuery, operation: OperationContext): Promise<ParseRow[]> {
    const always = () => true;
    return this.along(pipelineRouteOf(this.call), always, (reader) => reader.aggregate(query, operation));
  }

  /** Links between rows belong to nobody: whose the rows are is asked of the rows. */
  async related(query: RelatedQuery, operation: OperationContext): Promise<string[]> {
    return operatorReader(this.routes).related(query, operation);
  }

  explain(query: CountQuery, operation: OperationContext): Promise<QueryPlan> {
    return this.along(
      'plans',
      () => canBeAsked(query),
      (reader) => reader.explain(query, operation),
    );
  }

  /** A caller in client mode has no other way, and takes what Parse Server answers. */
  private get serverJudges(): boolean {
    return postureOf(this.call.agent) === 'session';
  }

  private async along<T>(
    operation: RoutedOperation,
    suitsServer: () => boolean,
    work: (reader: RecordReader) => Promise<T>,
  ): Promise<T> {
    const route = chosenRoute(
      operation,
      this.call,
      (one) => this.isOpen(one) && (one === 'direct' || suitsServer()),
    );
    const { sessions } = this.routes;
    return withSession(this.call, sessions, async () => work(await this.reader(route)));
  }

  private isOpen(route: Route): boolean {
    const { direct, restMaster } = this.routes;
    if (route === 'direct') return direct !== null;
    return this.call.agent.identity.kind === 'sessionToken' || restMaster !== null;
  }

  private async reader(route: Route): Promise<RecordReader> {
    const { identity } = this.call.agent;
    const { direct, sessions } = this.routes;
    if (route === 'rest') return this.routes.rest(credentialsOf(identity));
    // MongoDB does not ask whether the session still exists.
    if (identity.kind === 'sessionToken') await sessions.assertAlive(identity.token);
    return direct ?? operatorReader(this.routes);
  }
}
