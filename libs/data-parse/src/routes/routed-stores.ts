import { refusals, Refused } from '#core';
import {
  type AggregateQuery,
  type CountQuery,
  type FacetCounts,
  type FacetQuery,
  type FindQuery,
  type IncludePlan,
  type OperationContext,
  type ParseRow,
  type PipelineRoute,
  type QueryPlan,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  type RelatedQuery,
  type SearchHit,
  type ShownRequest,
  type StoreCall,
  type TextSearchQuery,
  type VectorSearchQuery,
} from '#data';
import {
  type AgentScope,
  constrainedFields,
  joinTargets,
  type Pipeline,
  type ReadHooks,
  type Where,
} from '#policy';
import { credentialsOf, type ParseCredentials } from '../connection/parse-connection.js';
import { isPlainObject } from '../query/plain-value.js';
import { isExpressible } from '../query/where-to-rest.js';
import {
  type DataRoutes,
  hookedAmong,
  operatorReader,
  pipelineRouteOf,
  type SessionWatch,
  withSession,
} from './data-routes.js';
import {
  authModeOf,
  chooseRoute,
  NEEDS_DIRECT,
  type Route,
  type RoutedOperation,
  routesFor,
} from './route-table.js';

/** Whether Parse Server's query language can express the request. */
function canBeAsked({ where, include = [] }: Pick<FindQuery, 'where' | 'include'>): boolean {
  return isExpressible(where) && include.every(canBeAsked);
}

/**
 * Whether Parse Server, called with the caller's session, returns exactly the requested rows. It does not where
 * - a predicate names a column that the session may not query,
 * - the right to search a class and the right to read its rows by id differ: it treats all but the plainest queries as a
 * search,
 * - it hides the column that decides how rows are shown.
 */
function serverAgrees(query: FindQuery, scope: AgentScope): boolean {
  const { className, where, include = [] } = query;
  if (namesIds(where) && !searchedAsRead(className, scope)) return false;
  return (
    countAgrees(query, scope) &&
    !hidesDeciders(className, scope) &&
    include.every((plan) => includeAgrees(plan, scope))
  );
}

function countAgrees({ className, where }: CountQuery, scope: AgentScope): boolean {
  const hidden = scope.rights.protectedColumns(className)?.hidden;
  return hidden === undefined || ![...constrainedFields(where)].some((field) => hidden.has(field));
}

function includeAgrees({ targetClass: className, where, include }: IncludePlan, scope: AgentScope): boolean {
  return searchedAsRead(className, scope) && serverAgrees({ className, where, include, limit: 1 }, scope);
}

function searchedAsRead(className: string, { rights }: AgentScope): boolean {
  const [find, get] = [rights.verdict(className, 'find'), rights.verdict(className, 'get')];
  return JSON.stringify(find) === JSON.stringify(get);
}

function hidesDeciders(className: string, { rights }: AgentScope): boolean {
  const columns = rights.protectedColumns(className);
  return columns !== null && columns.perRow && columns.deciders.some((field) => columns.hidden.has(field));
}

function namesIds(where: Where): boolean {
  return Object.entries(where).some(([key, value]) => {
    if (key === '$and' && Array.isArray(value)) return value.filter(isPlainObject).some(namesIds);
    return key === 'objectId';
  });
}

/**
 * The reader of a deployment with a Parse Server. By itself it reads with the operator's authority; `forCall` returns the
 * reader of one call, which uses the route of the route table.
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

/** Reads for one call. */
class CallReader extends RecordReader {
  constructor(
    private readonly routes: DataRoutes,
    private readonly call: StoreCall,
  ) {
    super();
  }

  override get pipelineRoute(): PipelineRoute {
    // Asked about a pipeline that has run.
    const route = chooseRoute({
      operation: pipelineRouteOf(this.call),
      agent: this.call.agent,
      isOpen: (one) => this.isOpen(one),
      hookedClasses: () => [],
    });
    return route === 'direct' ? 'mongo_direct' : 'parse_server';
  }

  find(query: FindQuery, operation: OperationContext): Promise<ParseRow[]> {
    return this.alongRows(query, (reader) => reader.find(query, operation));
  }

  override findShown(query: FindQuery, shown: ShownRequest, operation: OperationContext) {
    return this.alongRows(query, (reader) => reader.findShown(query, shown, operation));
  }

  private alongRows<T>(query: FindQuery, work: (reader: RecordReader) => Promise<T>): Promise<T> {
    const suits = () => canBeAsked(query) && (!this.serverJudges || serverAgrees(query, this.call.scope));
    return this.along('rows', () => classesOf(query), suits, work);
  }

  count(query: CountQuery, operation: OperationContext): Promise<number> {
    const suits = () => canBeAsked(query) && (!this.serverJudges || countAgrees(query, this.call.scope));
    return this.along(
      'rows',
      () => [query.className],
      suits,
      (reader) => reader.count(query, operation),
    );
  }

  aggregate(query: AggregateQuery, operation: OperationContext): Promise<ParseRow[]> {
    return this.along(
      pipelineRouteOf(this.call),
      () => [query.className, ...joinTargets(query.pipeline as Pipeline)],
      () => true,
      (reader) => reader.aggregate(query, operation),
    );
  }

  /** Relations have no rights of their own: the rights of the linked rows are checked when those are read. */
  async related(query: RelatedQuery, operation: OperationContext): Promise<string[]> {
    return operatorReader(this.routes).related(query, operation);
  }

  explain(query: CountQuery, operation: OperationContext): Promise<QueryPlan> {
    return this.along(
      'plans',
      () => [query.className],
      () => canBeAsked(query),
      (reader) => reader.explain(query, operation),
    );
  }

  /** A caller in client mode has no other route and receives what Parse Server returns. */
  private get serverJudges(): boolean {
    return authModeOf(this.call.agent) === 'session';
  }

  private async along<T>(
    operation: RoutedOperation,
    classNames: () => readonly string[],
    suitsServer: () => boolean,
    work: (reader: RecordReader) => Promise<T>,
  ): Promise<T> {
    const { sessions, readHooks } = this.routes;
    const route = chooseRoute({
      operation,
      agent: this.call.agent,
      isOpen: (one) => this.isOpen(one) && (one === 'direct' || suitsServer()),
      hookedClasses: () => hookedAmong(classNames(), this.call, readHooks),
    });
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
    // MongoDB does not check whether the session still exists.
    if (identity.kind === 'sessionToken') await sessions.assertAlive(identity.token);
    return direct ?? operatorReader(this.routes);
  }
}

/** Of the rows and of what they include. */
function classesOf({ className, include = [] }: Pick<FindQuery, 'className' | 'include'>): string[] {
  return [
    className,
    ...include.flatMap(({ targetClass, include: further }) =>
      classesOf({ className: targetClass, include: further }),
    ),
  ];
}

interface SearchRoutes {
  /** Null: MongoDB is not configured. */
  readonly direct: RecordSearcher | null;
  readonly sessions: SessionWatch;
  readonly readHooks: ReadHooks;
}

/**
 * The search of a deployment with a Parse Server, which has no search itself: always direct, for sessions that are still
 * valid.
 */
export class RoutedRecordSearcher extends RecordSearcher {
  constructor(
    private readonly routes: SearchRoutes,
    private readonly call: StoreCall | null = null,
  ) {
    super();
  }

  override forCall(call: StoreCall): RecordSearcher {
    return new RoutedRecordSearcher(this.routes, call);
  }

  override canSearch() {
    return this.routes.direct?.canSearch() ?? false;
  }

  async text(query: TextSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return (await this.searcher(query)).text(query, operation);
  }

  async facets(query: FacetQuery, operation: OperationContext): Promise<FacetCounts> {
    return (await this.searcher(query)).facets(query, operation);
  }

  async nearest(query: VectorSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return (await this.searcher(query)).nearest(query, operation);
  }

  private async searcher({ className }: { readonly className: string }): Promise<RecordSearcher> {
    const { call } = this;
    const { direct, sessions, readHooks } = this.routes;
    if (call)
      chooseRoute({
        operation: 'searches',
        agent: call.agent,
        isOpen: () => direct !== null,
        hookedClasses: () => hookedAmong([className], call, readHooks),
      });
    if (!direct) throw new Refused(refusals.noRoute(NEEDS_DIRECT));
    const identity = call?.agent.identity;
    // MongoDB does not check whether the session still exists.
    if (identity?.kind === 'sessionToken') await sessions.assertAlive(identity.token);
    return direct;
  }
}

/** Returned to callers for whom the table has no write route. */
const NOBODY_SIGNED_IN =
  'Writes go through Parse Server, which knows sessions and the master key: it cannot act as an assumed user or role';

interface WriteRoutes {
  rest(credentials: ParseCredentials): RecordWriter;
  readonly sessions: SessionWatch;
}

/**
 * The writer of a deployment with a Parse Server: every change of a row goes through it, so that its triggers run. It writes
 * for calls only; without a call it refuses.
 */
export class RoutedRecordWriter extends RecordWriter {
  constructor(
    private readonly routes: WriteRoutes,
    private readonly call: StoreCall | null = null,
  ) {
    super();
  }

  override forCall(call: StoreCall): RecordWriter {
    return new RoutedRecordWriter(this.routes, call);
  }

  create(className: string, fields: ParseRow, operation: OperationContext): Promise<ParseRow> {
    return this.write((writer) => writer.create(className, fields, operation));
  }

  update(
    className: string,
    objectId: string,
    fields: ParseRow,
    where: Where,
    operation: OperationContext,
  ): Promise<ParseRow | null> {
    return this.write((writer) => writer.update(className, objectId, fields, where, operation));
  }

  delete(className: string, objectId: string, where: Where, operation: OperationContext): Promise<boolean> {
    return this.write((writer) => writer.delete(className, objectId, where, operation));
  }

  private async write<T>(work: (writer: RecordWriter) => Promise<T>): Promise<T> {
    const { call, routes } = this;
    if (!call || !routesFor('row_writes', call.agent).includes('rest'))
      throw new Refused(refusals.noRoute(NOBODY_SIGNED_IN));
    return withSession(call, routes.sessions, () => work(routes.rest(credentialsOf(call.agent.identity))));
  }
}
