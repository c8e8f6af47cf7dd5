import type { Agent } from '#core';

/** The authority with which a call reads and writes. */
export type AuthMode = 'master' | 'session' | 'assumed' | 'client';

/** `rest`: through Parse Server, which applies a session's rights and runs triggers. `direct`: MongoDB, rights applied here. */
export type Route = 'rest' | 'direct';

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

interface TableRow {
  /** What the row of the table covers, as text for the documentation. */
  readonly serves: string;
  /** The routes of each authentication mode, the preferred first; none: refused. */
  readonly routes: Readonly<Record<AuthMode, readonly Route[]>>;
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
      session: ['rest', 'direct'],
      assumed: ['direct'],
      client: ['rest'],
    },
  },
  pipelines: {
    serves: '`aggregate`, pipelines of own tools',
    routes: { master: ['direct', 'rest'], session: ['direct'], assumed: ['direct'], client: [] },
  },
  groupings: {
    serves: '`group_by`, `group_by_date`, `distinct`, `export_data` with `pipeline`',
    routes: { master: ['rest', 'direct'], session: ['direct'], assumed: ['direct'], client: [] },
  },
  searches: {
    serves: 'text and vector search',
    routes: { master: ['direct'], session: ['direct'], assumed: ['direct'], client: ['direct'] },
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

export function authModeOf({ identity, definition }: Pick<Agent, 'identity' | 'definition'>): AuthMode {
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

export function routesFor(operation: RoutedOperation, mode: AuthMode): readonly Route[] {
  return ROUTE_TABLE[operation].routes[mode];
}
