import { type Agent, refuse } from '#core';

/** The authority with which a call reads and writes. */
export type AuthMode = 'master' | 'session' | 'assumed' | 'client';

/** `rest`: through Parse Server, which applies a session's rights and runs triggers. `direct`: MongoDB, rights applied here. */
export type Route = 'rest' | 'direct';

/**
 * A route, and for whom: MongoDB runs no `beforeFind` and no `afterFind`, so for a caller whom these bind it is a route only
 * to classes of which the operator says that they have none.
 */
export type RouteRule = Route | 'direct without read hooks';

export type RoutedOperation =
  | 'rows'
  | 'pipelines'
  | 'groupings'
  | 'searches'
  | 'plans'
  | 'operator'
  | 'schemas'
  | 'row_writes'
  | 'class_writes';

const WITHOUT_READ_HOOKS = 'direct without read hooks';

interface TableRow {
  /** What the row of the table covers, as text for the documentation. */
  readonly serves: string;
  /** The routes of each authentication mode, the preferred first; none: refused. */
  readonly routes: Readonly<Record<AuthMode, readonly RouteRule[]>>;
}

/**
 * The route of each kind of access when a Parse Server is configured. The next route of a cell is used when the previous one
 * is not configured or does not support the request: see docs/reference/routes.md.
 */
export const ROUTE_TABLE: Readonly<Record<RoutedOperation, TableRow>> = {
  rows: {
    serves:
      '`query_class`, `get_object`, `get_objects`, `get_sample_objects`, `count_objects`, `export_data`, objects of `call_method`',
    routes: {
      master: ['rest', 'direct'],
      session: ['rest', WITHOUT_READ_HOOKS],
      assumed: ['direct'],
      client: ['rest'],
    },
  },
  pipelines: {
    serves: '`aggregate`, pipelines of own tools',
    routes: { master: ['direct', 'rest'], session: [WITHOUT_READ_HOOKS], assumed: ['direct'], client: [] },
  },
  groupings: {
    serves: '`group_by`, `group_by_date`, `distinct`, `export_data` with `pipeline`',
    routes: { master: ['rest', 'direct'], session: [WITHOUT_READ_HOOKS], assumed: ['direct'], client: [] },
  },
  searches: {
    serves: 'text and vector search',
    routes: {
      master: ['direct'],
      session: [WITHOUT_READ_HOOKS],
      assumed: ['direct'],
      client: [WITHOUT_READ_HOOKS],
    },
  },
  plans: {
    serves: '`explain_query`',
    routes: { master: ['rest', 'direct'], session: ['rest'], assumed: [], client: [] },
  },
  operator: {
    serves:
      "questions of the operator's own predicates, members of relations, conditions of writes, collection-scan checks",
    routes: {
      master: ['direct', 'rest'],
      session: ['direct', 'rest'],
      assumed: ['direct', 'rest'],
      client: ['direct', 'rest'],
    },
  },
  schemas: {
    serves: '`get_all_schemas`, `get_schema`, every gate that asks for a class',
    routes: {
      master: ['direct', 'rest'],
      session: ['direct', 'rest'],
      assumed: ['direct', 'rest'],
      client: ['direct', 'rest'],
    },
  },
  row_writes: {
    serves: '`create_object`, `update_object`, `delete_object`, writes of methods and own tools',
    routes: { master: ['rest'], session: ['rest'], assumed: [], client: ['rest'] },
  },
  class_writes: {
    serves: '`create_class`, `delete_class`',
    routes: { master: ['rest'], session: [], assumed: [], client: [] },
  },
};

/** The row of a tool's pipelines; of any other tool, `pipelines`. */
const PIPELINE_OPERATIONS: ReadonlyMap<string, RoutedOperation> = new Map<string, RoutedOperation>([
  ['group_by', 'groupings'],
  ['group_by_date', 'groupings'],
  ['distinct', 'groupings'],
  ['export_data', 'groupings'],
  ['semantic_search', 'searches'],
  ['find_similar', 'searches'],
  ['atlas_text_search', 'searches'],
  ['atlas_autocomplete', 'searches'],
  ['atlas_faceted_search', 'searches'],
]);

export function pipelineOperation(tool: string): RoutedOperation {
  return PIPELINE_OPERATIONS.get(tool) ?? 'pipelines';
}

export function findAuthMode({ identity, definition }: Pick<Agent, 'identity' | 'definition'>): AuthMode {
  switch (identity.kind) {
    case 'master':
      return 'master';
    case 'sessionToken':
      return definition.clientMode ? 'client' : 'session';
    case 'aclUser':
    case 'aclRole':
      return 'assumed';
  }
}

/** The row of the table for one caller. A sub-agent of a session that acts as a user stays bound by what binds the session. */
export function routesFor(operation: RoutedOperation, agent: Agent): readonly RouteRule[] {
  const rules = ROUTE_TABLE[operation].routes[findAuthMode(agent)];
  if (!READS_ROWS.has(operation) || !descendsFromSession(agent)) return rules;
  return rules.map((rule) => (rule === 'direct' ? WITHOUT_READ_HOOKS : rule));
}

/** What the caller reads of rows. Questions of the operator's own predicates and classes show it none. */
const READS_ROWS: ReadonlySet<RoutedOperation> = new Set([
  'rows',
  'pipelines',
  'groupings',
  'searches',
  'plans',
]);

function descendsFromSession({ parent }: Agent): boolean {
  return parent !== null && (parent.identity.kind === 'sessionToken' || descendsFromSession(parent));
}

interface Asked {
  readonly operation: RoutedOperation;
  readonly agent: Agent;
  /** Whether the route is configured and supports the request. */
  readonly isOpen: (route: Route) => boolean;
  /** The classes of the request of which Cloud Code may decide what a user reads. */
  readonly listHookedClasses: () => readonly string[];
}

/** The route of a request. @throws Refused when it has none */
export function chooseRoute({ operation, agent, isOpen, listHookedClasses: hookedClasses }: Asked): Route {
  const rules = routesFor(operation, agent);
  let hooked: readonly string[] = [];
  for (const rule of rules) {
    const route = rule === WITHOUT_READ_HOOKS ? 'direct' : rule;
    if (!isOpen(route)) continue;
    if (rule === WITHOUT_READ_HOOKS) hooked = hookedClasses();
    if (rule !== WITHOUT_READ_HOOKS || hooked.length === 0) return route;
  }
  if (hooked.length > 0) throw refuse.readHooksPossible(hooked);
  throw refuse.noRoute(rules.some((rule) => rule !== 'rest') ? NEEDS_DIRECT : NOT_THIS_WAY);
}

/** The reason why a route of the table is not used. */
export const NEEDS_DIRECT =
  'This needs direct access to MongoDB (database.uri), which is not configured: Parse Server does not answer it';
const NOT_THIS_WAY =
  'This cannot be asked of Parse Server on behalf of this caller, and no other way is open to it';
