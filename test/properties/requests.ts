import fc from 'fast-check';
import {
  anyColumn,
  anyName,
  className,
  columnsOf,
  type Json,
  operand,
  where,
} from './constraint-requests.js';
import { pipeline } from './pipeline-requests.js';
import type { Request } from './asked-service.js';
import { searches } from './search-requests.js';
import { type ClassName, rowId, ROWS } from './vocabulary.js';
import { ITS_NAME } from './world-databases.js';

const call = (name: string, args: fc.Arbitrary<Json>): fc.Arbitrary<Request> =>
  args.map((given) => ({ method: 'tools/call', params: { name, arguments: given } }));

/** As often there as not. An option of frequency 1 would never be. */
const optional = <T>(some: fc.Arbitrary<T>) => fc.option(some, { nil: undefined, freq: 2 });

const seldom = <T>(some: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: some });

/** With `class_name`; members without a value are left out. */
const about = (make: (name: ClassName) => Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Json> =>
  className.chain((name) =>
    fc
      .record({ class_name: fc.constant(name), ...make(name) })
      .map((args) => Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined))),
  );

const id = (name: ClassName) => fc.nat(ROWS - 1).map((index) => rowId(name, index));

const path = (name: ClassName): fc.Arbitrary<string> =>
  fc.constantFrom(...columnsOf(name)).chain((column) => {
    if (!column.target) return fc.constant(column.name);
    const deeper = columnsOf(column.target).map((inner) => `${column.name}.${inner.name}`);
    return fc.constantFrom(column.name, column.name, ...deeper);
  });

const keys = (name: ClassName) =>
  fc.array(fc.oneof(anyName(name), path(name)), { minLength: 1, maxLength: 4 });
const include = (name: ClassName) => fc.array(path(name), { minLength: 1, maxLength: 2 });
const order = (name: ClassName) =>
  fc.tuple(fc.constantFrom('', '-'), anyName(name)).map(([sign, key]) => sign + key);
const atMost = (max: number) => optional(fc.integer({ min: 1, max }));
const sometimes = (value: unknown) => seldom(fc.constant(value));
const opinion = optional(fc.boolean());

const READS: readonly fc.Arbitrary<Request>[] = [
  call(
    'query_class',
    about((name) => ({
      where: optional(where(name, 2)),
      keys: optional(keys(name)),
      include: optional(include(name)),
      order: optional(order(name)),
      limit: optional(fc.integer({ min: 1, max: 6 })),
      skip: optional(fc.nat(2)),
      format: optional(fc.constantFrom('json', 'csv', 'markdown', 'table', 'text')),
      apply_canonical_filter: opinion,
    })),
  ),
  call(
    'count_objects',
    about((name) => ({ where: where(name, 2), apply_canonical_filter: opinion })),
  ),
  call(
    'get_object',
    about((name) => ({
      object_id: id(name),
      include: optional(include(name)),
      keys: optional(keys(name)),
    })),
  ),
  call(
    'get_objects',
    about((name) => ({
      ids: fc.array(id(name), { maxLength: 5 }),
      include: optional(include(name)),
      keys: optional(keys(name)),
    })),
  ),
  call(
    'get_sample_objects',
    about(() => ({ limit: optional(fc.integer({ min: 1, max: 6 })) })),
  ),
  call(
    'explain_query',
    about((name) => ({ where: where(name, 2) })),
  ),
];

const SHAPES: readonly fc.Arbitrary<Request>[] = [
  call('list_tools', fc.constantFrom<Json>({}, { category: 'query' }, { skip: 3 })),
  call(
    'get_all_schemas',
    fc.constantFrom<Json>({}, { prefix: 'L' }, { names: ['Ledger', 'Orchard'] }, { skip: 1 }),
  ),
  call(
    'get_schema',
    about(() => ({ skip: optional(fc.integer({ min: 0, max: 6 })) })),
  ),
  ...['tools/list', 'resources/list', 'prompts/list', 'resources/templates/list'].map((method) =>
    fc.constant({ method, params: {} }),
  ),
  fc
    .tuple(className, fc.constantFrom('schema', 'count', 'samples'))
    .map(([name, kind]) => ({ method: 'resources/read', params: { uri: `parse://${name}/${kind}` } })),
  fc.constantFrom('', 'O', 'l', '_').map((value) => ({
    method: 'completion/complete',
    params: {
      ref: { type: 'ref/resource', uri: 'parse://{className}/schema' },
      argument: { name: 'className', value },
    },
  })),
  className.map((name) => ({
    method: 'completion/complete',
    params: {
      ref: { type: 'ref/prompt', name: 'count_by' },
      argument: { name: 'group_by', value: '' },
      context: { arguments: { class_name: name } },
    },
  })),
  fc.constantFrom<Json>({}, { classes: 'Ledger,Orchard' }).map((given) => ({
    method: 'prompts/get',
    params: { name: 'parse_relations', arguments: given },
  })),
];

const GROUPS_SHOWN = {
  sort: optional(fc.constantFrom('value_desc', 'value_asc', 'key_asc', 'key_desc')),
  limit: atMost(3),
  dry_run: sometimes(true),
};

const GROUPS: readonly fc.Arbitrary<Request>[] = [
  call(
    'group_by',
    about((name) => ({
      field: anyName(name),
      operation: optional(fc.constantFrom('count', 'sum', 'avg', 'min', 'max')),
      value_field: optional(anyName(name)),
      where: optional(where(name, 1)),
      flatten_arrays: opinion,
      ...GROUPS_SHOWN,
    })),
  ),
  call(
    'group_by_date',
    about((name) => ({
      field: fc.oneof(anyName(name), fc.constantFrom('createdAt', 'orcPlanted', 'orc_planted', 'crt_sealed')),
      interval: fc.constantFrom('year', 'month', 'day', 'second'),
      where: optional(where(name, 1)),
      operation: optional(fc.constantFrom('count', 'sum', 'average', 'min', 'max')),
      value_field: optional(anyName(name)),
      timezone: optional(fc.constantFrom('Europe/Berlin', '+02:00')),
      ...GROUPS_SHOWN,
    })),
  ),
  call(
    'distinct',
    about((name) => ({
      field: anyName(name),
      where: optional(where(name, 1)),
      sort: optional(fc.constantFrom('asc', 'desc', 'none')),
      limit: atMost(3),
      dry_run: sometimes(true),
    })),
  ),
  call(
    'export_data',
    about((name) => ({
      where: optional(where(name, 1)),
      columns: optional(keys(name)),
      keys: optional(keys(name)),
      include: optional(include(name)),
      order: optional(order(name)),
      pipeline: seldom(pipeline(name)),
      format: optional(fc.constantFrom('csv', 'markdown', 'table', 'ndjson')),
      limit: atMost(6),
      skip: optional(fc.nat(2)),
      row_cap: atMost(4),
      delivery: sometimes('inline'),
    })),
  ),
];

const fields = (name: ClassName) =>
  fc
    .array(
      anyColumn(name).chain((column) =>
        fc
          .oneof(
            { weight: 4, arbitrary: operand(column) },
            { weight: 1, arbitrary: fc.constant({ __op: 'Increment', amount: 1 }) },
            { weight: 1, arbitrary: fc.constant({ __op: 'AddUnique', objects: ['plain 1'] }) },
            { weight: 1, arbitrary: fc.constant({ __op: 'Delete' }) },
          )
          .map((value) => [column.name, value] as const),
      ),
      { minLength: 1, maxLength: 2 },
    )
    .map((entries) => Object.fromEntries(entries));

/** Creating rows makes ids and times that differ between any two runs, so those answers are only searched. */
const WRITES: readonly fc.Arbitrary<Request>[] = [
  call(
    'update_object',
    about((name) => ({ object_id: id(name), fields: fields(name), idempotency_key: seldom(fc.uuid()) })),
  ),
  call(
    'delete_object',
    about((name) => ({ object_id: id(name), idempotency_key: seldom(fc.uuid()) })),
  ),
];

const pipelines = call(
  'aggregate',
  about((name) => ({
    pipeline: pipeline(name),
    apply_canonical_filter: opinion,
    compact_pointers: opinion,
  })),
);

const NONSENSE: readonly fc.Arbitrary<Request>[] = [
  call('query_class', fc.constantFrom<Json>({}, { class_name: 'Nothing' }, { class_name: 'Ledge' })),
  call(
    'get_schema',
    fc.constantFrom<Json>({ class_name: 'Orchards' }, { class_name: '_Session' }, { class_name: 'Cra' }),
  ),
  call(
    'call_method',
    about(() => ({ method_name: fc.constant('none') })),
  ),
  call(
    'query_class',
    about((name) => ({ where: fc.constantFrom<unknown>('x', [], { $where: '1' }, { [`${name}x`]: 1 }) })),
  ),
  fc.constantFrom('_Session', '_Role', '_Join:orcPeers:Orchard', '_SCHEMA', '_JobStatus').map((name) => ({
    method: 'tools/call',
    params: { name: 'query_class', arguments: { class_name: name } },
  })),
  fc.constant({ method: 'resources/read', params: { uri: 'parse://Nothing/schema' } }),
];

const INTO = ['second', 'of_acme', 'of_globex', 'of_nobody'];

/** Other databases by their names, which no call chooses. */
const OF_OTHERS: fc.Arbitrary<Request> = fc
  .tuple(className, className, fc.constantFrom('', 'rows of '), fc.constantFrom(...INTO))
  .chain(([class_name, other, prefix, end]) => {
    const [db, coll] = [`${ITS_NAME}_${end}`, prefix + other];
    const stages = (stage: Json): Json => ({ class_name, pipeline: [stage] });
    return fc.oneof(
      call(
        'aggregate',
        fc.constantFrom<Json>(
          stages({ $unionWith: { db, coll } }),
          stages({ $unionWith: { coll: `${db}.${coll}` } }),
          stages({ $lookup: { from: { db, coll }, as: 'x', pipeline: [] } }),
          stages({ $lookup: { from: `${db}.${coll}`, as: 'x', pipeline: [] } }),
          stages({ $graphLookup: { ...graphOf(`${db}.${coll}`) } }),
          stages({ $merge: { into: { db, coll } } }),
        ),
      ),
      call(
        'query_class',
        fc.constantFrom<Json>(
          { class_name: `${db}.${coll}` },
          { class_name: `${db}/${coll}` },
          { class_name: `apart.${other}` },
          { class_name, database: db },
          { class_name, tenant: end.slice(3), tenantId: end.slice(3) },
          { class_name, where: { $inQuery: { className: `${db}.${coll}`, where: {} } } },
        ),
      ),
      fc.constant({ method: 'resources/read', params: { uri: `parse://${db}.${coll}/samples` } }),
    );
  });

const graphOf = (from: string) => ({
  from,
  startWith: '$objectId',
  connectFromField: 'objectId',
  connectToField: 'objectId',
  as: 'x',
});

/** One request over the whole surface: most of them well-formed, many of them about what they should not know. */
export const requests: fc.Arbitrary<Request> = fc.oneof(
  { weight: 8, arbitrary: fc.oneof(...READS) },
  { weight: 4, arbitrary: fc.oneof(...SHAPES) },
  { weight: 5, arbitrary: fc.oneof(...GROUPS) },
  { weight: 9, arbitrary: pipelines },
  { weight: 4, arbitrary: fc.oneof(...searches(className)) },
  { weight: 1, arbitrary: fc.oneof(...WRITES) },
  { weight: 1, arbitrary: fc.oneof(...NONSENSE) },
  { weight: 1, arbitrary: OF_OTHERS },
);
