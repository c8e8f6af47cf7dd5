import { type Agent, refuse, isJsonObject } from '#core';
import {
  type CountQuery,
  type FindQuery,
  type IncludePlan,
  type Reads,
  type ReadStore,
  type SearchStore,
  type StoreCall,
  type StoreOperation,
  type WriteStore,
} from '#data';
import {
  type AgentScope,
  type FieldSchema,
  listConstrainedFields,
  joinTargets,
  type Pipeline,
  type ReadHooks,
  type Where,
} from '#policy';
import { toCredentials, type ParseCredentials } from '../connection/parse-connection.js';
import { isExpressible } from '../query/where-to-rest.js';
import {
  type DataRoutes,
  listHooked,
  operatorStore,
  findPipelineRoute,
  type SessionWatch,
  withSession,
} from './data-routes.js';
import {
  findAuthMode,
  chooseRoute,
  NEEDS_DIRECT,
  type Route,
  type RoutedOperation,
  routesFor,
} from './route-table.js';

/** Whether Parse Server's query language can express the request. */
function canBeAsked(
  { className, where, include = [] }: Pick<FindQuery, 'className' | 'where' | 'include'>,
  scope: AgentScope,
): boolean {
  return (
    isExpressible(where) &&
    !comparesDigits(where, scope.schemas.get(className)?.fields) &&
    include.every(({ targetClass, ...plan }) => canBeAsked({ ...plan, className: targetClass }, scope))
  );
}

/** Whether a constraint compares numbers as text: those that JSON does not have, which is all that Parse Server reads. */
function comparesDigits(where: Where, fields: ReadonlyMap<string, FieldSchema> | undefined): boolean {
  return Object.entries(where).some(([key, value]) => {
    if (key.startsWith('$'))
      return (
        Array.isArray(value) && value.filter(isJsonObject).some((branch) => comparesDigits(branch, fields))
      );
    if (fields?.get(key)?.type !== 'Number') return false;
    return isJsonObject(value) ? Object.values(value).flat().some(isText) : isText(value);
  });
}

const isText = (value: unknown): boolean => typeof value === 'string';

/**
 * Whether Parse Server, called with the caller's session, returns exactly the requested rows. It does not where
 * - a predicate names a column that the session may not query,
 * - the right to search a class and the right to read its rows by id differ: it treats all but the plainest queries as a
 * search,
 * - it hides the column that decides how rows are shown.
 */
function serverAgrees(query: FindQuery, scope: AgentScope): boolean {
  const { className, where, include = [] } = query;
  if (namesIds(where) && !isSearchedAsRead(className, scope)) return false;
  return (
    countAgrees(query, scope) &&
    !hidesDeciders(className, scope) &&
    include.every((plan) => includeAgrees(plan, scope))
  );
}

function countAgrees({ className, where }: CountQuery, scope: AgentScope): boolean {
  const hidden = scope.rights.findProtectedColumns(className)?.hidden;
  return hidden === undefined || ![...listConstrainedFields(where)].some((field) => hidden.has(field));
}

function includeAgrees({ targetClass: className, where, include }: IncludePlan, scope: AgentScope): boolean {
  return isSearchedAsRead(className, scope) && serverAgrees({ className, where, include, limit: 1 }, scope);
}

function isSearchedAsRead(className: string, { rights }: AgentScope): boolean {
  const [find, get] = [rights.verdict(className, 'find'), rights.verdict(className, 'get')];
  return JSON.stringify(find) === JSON.stringify(get);
}

function hidesDeciders(className: string, { rights }: AgentScope): boolean {
  const columns = rights.findProtectedColumns(className);
  return columns !== null && columns.perRow && columns.deciders.some((field) => columns.hidden.has(field));
}

function namesIds(where: Where): boolean {
  return Object.entries(where).some(([key, value]) => {
    if (key === '$and' && Array.isArray(value)) return value.filter(isJsonObject).some(namesIds);
    return key === 'objectId';
  });
}

/** What a route for an operation depends on. */
interface Routing {
  readonly kind: RoutedOperation;
  readonly classNames: () => readonly string[];
  /** Whether Parse Server can be asked, and with a session answers what is requested. */
  readonly suitsServer: () => boolean;
}

/** A caller in client mode has no other route and receives what Parse Server returns. Null: the operator's route. */
function routingOf(operation: StoreOperation<Reads>, call: StoreCall): Routing | null {
  const { scope, agent } = call;
  const serverJudges = findAuthMode(agent) === 'session';
  switch (operation.kind) {
    case 'find':
    case 'findShown':
      return {
        kind: 'rows',
        classNames: () => listClasses(operation),
        suitsServer: () => canBeAsked(operation, scope) && (!serverJudges || serverAgrees(operation, scope)),
      };
    case 'count':
      return {
        kind: 'rows',
        classNames: () => [operation.className],
        suitsServer: () => canBeAsked(operation, scope) && (!serverJudges || countAgrees(operation, scope)),
      };
    case 'aggregate':
      return {
        kind: findPipelineRoute(call),
        classNames: () => [operation.className, ...joinTargets(operation.pipeline as Pipeline)],
        suitsServer: () => true,
      };
    case 'explain':
      return {
        kind: 'plans',
        classNames: () => [operation.className],
        suitsServer: () => canBeAsked(operation, scope),
      };
    case 'related':
      // Relations have no rights of their own: the rights of the linked rows are checked when those are read.
      return null;
  }
}

/**
 * The reads of a deployment with a Parse Server: for the operator with its authority, for a call on the route of the route
 * table.
 */
export function routedReads(routes: DataRoutes): ReadStore {
  const { direct, restMaster, sessions, readHooks } = routes;
  const storeOn = async (route: Route, { identity }: Agent): Promise<ReadStore> => {
    if (route === 'rest') return routes.rest(toCredentials(identity));
    // MongoDB does not check whether the session still exists.
    if (identity.kind === 'sessionToken') await sessions.assertAlive(identity.token);
    return operatorStore(routes);
  };
  return {
    run: async (operation, context, caller) => {
      const routing = caller === 'operator' ? null : routingOf(operation as StoreOperation<Reads>, caller);
      if (caller === 'operator' || !routing) return operatorStore(routes).run(operation, context, 'operator');
      const { agent } = caller;
      const isOpen = (route: Route) =>
        route === 'direct'
          ? direct !== null
          : (agent.identity.kind === 'sessionToken' || restMaster !== null) && routing.suitsServer();
      const listHookedClasses = () => listHooked(routing.classNames(), caller, readHooks);
      const route = chooseRoute({ operation: routing.kind, agent, isOpen, listHookedClasses });
      return withSession(caller, sessions, async () =>
        (await storeOn(route, agent)).run(operation, context, caller),
      );
    },
  };
}

/** Of the rows and of what they include. */
function listClasses({ className, include = [] }: Pick<FindQuery, 'className' | 'include'>): string[] {
  return [
    className,
    ...include.flatMap(({ targetClass, include: further }) =>
      listClasses({ className: targetClass, include: further }),
    ),
  ];
}

interface SearchRoutes {
  /** Null: MongoDB is not configured. */
  readonly direct: SearchStore | null;
  readonly sessions: SessionWatch;
  readonly readHooks: ReadHooks;
}

/**
 * The search of a deployment with a Parse Server, which has no search itself: always direct, for sessions that are still
 * valid.
 */
export function routedSearches({ direct, sessions, readHooks }: SearchRoutes): SearchStore {
  return {
    canSearch: () => direct?.canSearch() ?? false,
    run: async (operation, context, caller) => {
      const agent = caller === 'operator' ? null : caller.agent;
      if (caller !== 'operator')
        chooseRoute({
          operation: 'searches',
          agent: caller.agent,
          isOpen: () => direct !== null,
          listHookedClasses: () => listHooked([operation.className], caller, readHooks),
        });
      if (!direct) throw refuse.noRoute(NEEDS_DIRECT);
      // MongoDB does not check whether the session still exists.
      if (agent?.identity.kind === 'sessionToken') await sessions.assertAlive(agent.identity.token);
      return direct.run(operation, context, caller);
    },
  };
}

/** Returned to callers for whom the table has no write route. */
const NOBODY_SIGNED_IN =
  'Writes go through Parse Server, which knows sessions and the master key: it cannot act as an assumed user or role';

interface WriteRoutes {
  rest(credentials: ParseCredentials): WriteStore;
  readonly sessions: SessionWatch;
}

/**
 * The writes of a deployment with a Parse Server: every change of a row goes through it, so that its triggers run. It writes
 * for calls only; for the operator it refuses.
 */
export function routedWrites({ rest, sessions }: WriteRoutes): WriteStore {
  return {
    takesObjectIds: false,
    judgesRows: false,
    idFor: (_className, text) => Promise.resolve(text),
    run: async (operation, context, caller) => {
      if (caller === 'operator' || !routesFor('row_writes', caller.agent).includes('rest'))
        throw refuse.noRoute(NOBODY_SIGNED_IN);
      const store = rest(toCredentials(caller.agent.identity));
      return withSession(caller, sessions, () => store.run(operation, context, caller));
    },
  };
}
