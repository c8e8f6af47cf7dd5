import 'reflect-metadata';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import fc from 'fast-check';
import { type CommandStartedEvent, type Document, MongoClient, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Parley, ParleyModule } from '@parley/server';
import { startEmbeddings } from '../../support/embeddings-server.js';
import { type Database, startDatabase } from '../../support/service.js';

const text = { type: 'String' };
const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const everyone = { '*': true };
const open = {
  find: everyone,
  get: everyone,
  count: everyone,
  create: everyone,
  update: everyone,
  delete: everyone,
};
const doc = (objectId: string, orgId: string, embedding: number[]) => ({
  objectId,
  orgId,
  title: `About ${objectId}`,
  body: 'Green tea is steamed.',
  topic: objectId.slice(0, 3),
  rank: 1,
  embedding,
  shelf: pointer('Shelf', `of-${orgId}`),
  shelves: [pointer('Shelf', `of-${orgId}`)],
  ACL: { '*': { read: true, write: true } },
});

const SEED = {
  schemas: [
    {
      className: 'Doc',
      fields: {
        title: text,
        body: text,
        topic: text,
        orgId: text,
        rank: { type: 'Number' },
        archived: { type: 'Boolean' },
        embedding: { type: 'Array' },
        shelf: { type: 'Pointer', targetClass: 'Shelf' },
        shelves: { type: 'Array' },
        parent: { type: 'Pointer', targetClass: 'Doc' },
      },
      classLevelPermissions: open,
    },
    {
      className: 'Shelf',
      fields: { name: text, org: { type: 'Pointer', targetClass: 'Org' } },
      classLevelPermissions: open,
    },
    { className: 'Org', fields: { name: text } },
  ],
  users: [{ objectId: 'ada', username: 'ada' }],
  objects: {
    Doc: [doc('tea1', 'north', [1, 0, 0]), doc('cof1', 'north', [0, 1, 0]), doc('tea9', 'south', [1, 0, 0])],
    Shelf: ['north', 'south'].map((org) => ({ objectId: `of-${org}`, name: org, org: pointer('Org', org) })),
    Org: [{ objectId: 'north', name: 'North' }],
  },
};

/** The stored column and the stored tenant of every class that has one. */
const SHARDED: Readonly<Record<string, readonly [column: string, value: unknown]>> = {
  Doc: ['orgId', 'north'],
  Shelf: ['_p_org', 'Org$north'],
  sales: ['account', 'north'],
};

const either = { $or: [{ archived: { $exists: false } }, { archived: false }] };
const GATES = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: true,
  PARSE_AGENT_ALLOW_RAW_CRUD: true,
  PARSE_AGENT_ALLOW_SCHEMA_OPS: true,
  PARSE_AGENT_ALLOW_RAW_SCHEMA: true,
};
const SALE = new ObjectId('65a1b2c3d4e5f60718293a4b');

let database: Database;
let client: MongoClient;
let embeddings: Awaited<ReturnType<typeof startEmbeddings>>;
let app: INestApplication;
let parley: Parley;
const sent: CommandStartedEvent[] = [];

beforeAll(async () => {
  database = await startDatabase(SEED);
  embeddings = await startEmbeddings();
  client = new MongoClient(database.uri, { monitorCommands: true });
  const sales = client.db('parley').collection('sales');
  await sales.insertMany([
    { _id: SALE, account: 'north', total: 3, createdAt: new Date(), updatedAt: new Date() },
    { account: 'south', total: 4, createdAt: new Date(), updatedAt: new Date() },
  ]);
  // A shard key has an index.
  for (const [collection, [column]] of Object.entries(SHARDED))
    await client
      .db('parley')
      .collection(collection)
      .createIndex({ [column]: 1 });
  const agent = {
    permissions: 'admin' as const,
    tenantId: 'north',
    rateLimit: 1_000_000,
    masterAtlas: true,
    filters: { Doc: either },
  };
  const imports = [
    ParleyModule.forRoot({
      database: { connection: client, name: 'parley' },
      gates: GATES,
      agents: { desk: agent, ada: { ...agent, identity: { user: 'ada' } } },
      embeddings: { endpoint: embeddings.endpoint, model: 'small', apiKey: 'KEY', dimensions: 3 },
      policy: {
        unlistedClasses: 'allow',
        suppressMasterKeyWarning: true,
        refuseCollscan: true,
        classes: {
          Doc: {
            tenantScope: { field: 'orgId' },
            filters: { title: { $ne: 'nothing' } },
            canonicalFilter: either,
            properties: { shelves: { targetClass: 'Shelf' } },
            searchable: { field: 'embedding', textFields: ['body'], filterFields: ['topic', 'orgId'] },
          },
          Shelf: { tenantScope: { field: 'org' } },
          Sale: {
            storage: 'plain',
            collection: 'sales',
            tenantScope: { field: 'account' },
            properties: { account: { type: 'String' }, total: { type: 'Number' } },
          },
        },
      },
    }),
  ];
  app = (await Test.createTestingModule({ imports }).compile()).createNestApplication({ logger: false });
  await app.init();
  parley = app.get(Parley);
  client.on('commandStarted', (event) => sent.push(event));
});
afterAll(async () => {
  await app?.close();
  await client?.close();
  await embeddings?.stop();
  await database?.stop();
});

interface Answer {
  readonly error?: unknown;
  readonly result?: {
    readonly isError?: boolean;
    readonly tools?: { readonly name: string; inputSchema: Document }[];
  };
}

async function ask(method: string, params: object, agent = 'desk'): Promise<Answer> {
  const message = { jsonrpc: '2.0' as const, id: 1, method, params };
  const { body } = await parley.handle(message, parley.agentFor({ agent, principal: 'test' }));
  return body as Answer;
}

/** The commands that a tool sends. Fails when the call is refused: then nothing of it was seen. */
async function commandsOf(tool: string, args: object, agent = 'desk'): Promise<CommandStartedEvent[]> {
  sent.length = 0;
  const answer = await ask('tools/call', { name: tool, arguments: args }, agent);
  const refused = answer.result?.isError === false ? null : JSON.stringify(answer);
  expect(refused).toBeNull();
  return [...sent];
}

type Condition = Readonly<Record<string, unknown>>;

/**
 * Whether MongoDB's router finds the shard of a filter: it takes equalities at the top and inside `$and`, and none below `$or`,
 * `$nor`, `$not` or `$expr`.
 */
function isRouted(filter: unknown, [column, value]: readonly [string, unknown]): boolean {
  const { $and, [column]: compared } = (filter ?? {}) as Condition & { $and?: unknown[] };
  if (compared === value) return true;
  if ((compared as Condition | undefined)?.['$eq'] === value) return true;
  return Array.isArray($and) && $and.some((branch) => isRouted(branch, [column, value]));
}

/** Adjacent stages of `$match` are one filter for the database. */
function leadingMatch(stages: readonly Document[]): Document {
  const end = stages.findIndex((stage) => !('$match' in stage));
  return { $and: stages.slice(0, end < 0 ? stages.length : end).map(({ $match }) => $match as Document) };
}

/** The reads and changes of one command that the router could not send to one shard, in words. */
function strayIn(command: Document): string[] {
  const [name] = Object.keys(command);
  switch (name) {
    case 'find':
    case 'count':
    case 'distinct':
      return strayFilter(command[name], command['filter'] ?? command['query'], command);
    case 'findAndModify':
      return strayFilter(command[name], command['query'], command);
    case 'explain':
      return strayIn(command['explain'] as Document);
    case 'delete':
      return (command['deletes'] as Document[]).flatMap(({ q }) => strayFilter(command[name], q, command));
    case 'update':
      return (command['updates'] as Document[]).flatMap(({ q }) => strayFilter(command[name], q, command));
    case 'insert': {
      const scope = SHARDED[String(command[name])];
      const documents = command['documents'] as Document[];
      return scope && documents.some((row) => row[scope[0]] !== scope[1]) ? [JSON.stringify(command)] : [];
    }
    case 'aggregate':
      return strayStages(command[name], command['pipeline'] as Document[]);
    default:
      return [];
  }
}

function strayFilter(collection: unknown, filter: unknown, source: unknown): string[] {
  const scope = SHARDED[String(collection)];
  return !scope || isRouted(filter, scope) ? [] : [JSON.stringify(source)];
}

/** A search stage must be first: the database asks every shard, and the tenant follows at once. */
const isSearch = (stage: Document | undefined) =>
  stage !== undefined && ('$search' in stage || '$vectorSearch' in stage);

function strayStages(collection: unknown, stages: readonly Document[]): string[] {
  const rest = isSearch(stages[0]) ? stages.slice(1) : stages;
  const within = stages[0]?.['$vectorSearch'] as Document | undefined;
  return [
    ...strayFilter(collection, leadingMatch(rest), stages),
    ...(within ? strayFilter(collection, within['filter'], stages) : []),
    ...stages.flatMap((stage) => strayJoin(stage)),
  ];
}

function strayJoin({ $lookup, $unionWith, $graphLookup, $facet }: Document): string[] {
  if ($lookup) return strayStages($lookup.from, $lookup.pipeline ?? []);
  if ($unionWith) return strayStages($unionWith.coll, $unionWith.pipeline ?? []);
  if ($graphLookup) return strayFilter($graphLookup.from, $graphLookup.restrictSearchWithMatch, $graphLookup);
  if ($facet)
    return Object.values($facet as Record<string, Document[]>)
      .flat()
      .flatMap(strayJoin);
  return [];
}

/** Those of the events that read or change rows of classes with a tenant. */
const onRows = (events: readonly CommandStartedEvent[]) =>
  events.filter(({ command }) => {
    const [name] = Object.keys(command);
    const inner = name === 'explain' ? (command['explain'] as Document) : command;
    return Object.hasOwn(SHARDED, String(Object.values(inner)[0]));
  });

const strays = (events: readonly CommandStartedEvent[]) => events.flatMap(({ command }) => strayIn(command));

const Doc = { class_name: 'Doc' };
const where = { $or: [{ topic: 'tea' }, { rank: { $gt: 0 } }] };
const byName = { localField: 'topic', foreignField: 'topic', from: 'Doc', as: 'alike' };
const CALLS: readonly (readonly [tool: string, args: object])[] = [
  ['query_class', { ...Doc, where, limit: 5, order: '-rank' }],
  ['query_class', { ...Doc, where: { orgId: 'north' } }],
  ['query_class', { ...Doc, include: ['shelf', 'shelves'] }],
  [
    'query_class',
    { ...Doc, where: { shelf: { $inQuery: { className: 'Shelf', where: { name: 'north' } } } } },
  ],
  ['query_class', { class_name: 'Sale', where: { total: { $gt: 1 } } }],
  ['count_objects', { ...Doc, where }],
  ['count_objects', { class_name: 'Sale' }],
  ['get_object', { ...Doc, object_id: 'tea1', include: ['shelf'] }],
  ['get_object', { class_name: 'Sale', object_id: SALE.toHexString() }],
  ['get_objects', { ...Doc, ids: ['tea1', 'cof1'] }],
  ['get_sample_objects', Doc],
  ['explain_query', { ...Doc, where }],
  ['aggregate', { ...Doc, pipeline: [{ $group: { _id: '$topic', n: { $sum: 1 } } }] }],
  ['aggregate', { ...Doc, pipeline: [{ $match: { $expr: { $eq: ['$topic', 'tea'] } } }, { $count: 'n' }] }],
  ['aggregate', { ...Doc, pipeline: [{ $lookup: byName }] }],
  [
    'aggregate',
    {
      ...Doc,
      pipeline: [{ $lookup: { from: 'Shelf', localField: 'shelf', foreignField: 'objectId', as: 's' } }],
    },
  ],
  [
    'aggregate',
    {
      class_name: 'Shelf',
      pipeline: [{ $lookup: { from: 'Doc', localField: 'objectId', foreignField: 'shelf', as: 'd' } }],
    },
  ],
  [
    'aggregate',
    { ...Doc, pipeline: [{ $lookup: { from: 'Shelf', pipeline: [{ $sort: { name: 1 } }], as: 's' } }] },
  ],
  ['aggregate', { ...Doc, pipeline: [{ $unionWith: { coll: 'Shelf', pipeline: [] } }] }],
  [
    'aggregate',
    {
      ...Doc,
      pipeline: [
        {
          $graphLookup: {
            from: 'Doc',
            startWith: '$topic',
            connectFromField: 'topic',
            connectToField: 'title',
            as: 'g',
          },
        },
      ],
    },
  ],
  ['aggregate', { ...Doc, pipeline: [{ $facet: { a: [{ $count: 'n' }], b: [{ $limit: 1 }] } }] }],
  ['aggregate', { class_name: 'Sale', pipeline: [{ $group: { _id: null, sum: { $sum: '$total' } } }] }],
  ['group_by', { ...Doc, field: 'topic', where }],
  ['group_by_date', { ...Doc, field: 'createdAt', interval: 'day' }],
  ['distinct', { ...Doc, field: 'topic' }],
  ['export_data', { ...Doc, where }],
  ['export_data', { ...Doc, pipeline: [{ $group: { _id: '$topic', n: { $sum: 1 } } }] }],
  ['atlas_text_search', { ...Doc, query: 'tea' }],
  ['atlas_autocomplete', { ...Doc, query: 'abo', field: 'title' }],
  ['semantic_search', { ...Doc, query: 'what about tea' }],
  ['find_similar', { ...Doc, object_id: 'tea1' }],
  ['create_object', { ...Doc, fields: { title: 'new' } }],
  ['create_object', { ...Doc, fields: { title: 'new' }, idempotency_key: 'create-1' }],
  ['update_object', { ...Doc, object_id: 'tea1', fields: { rank: 2 } }],
  ['update_object', { ...Doc, object_id: 'tea1', fields: { rank: 3 }, idempotency_key: 'update-1' }],
  ['update_object', { class_name: 'Sale', object_id: SALE.toHexString(), fields: { total: 5 } }],
  ['delete_object', { ...Doc, object_id: 'cof1' }],
  ['delete_object', { class_name: 'Sale', object_id: SALE.toHexString(), idempotency_key: 'delete-1' }],
];

/** They name a class and read no row of it; facets of a class with a tenant are refused. */
const WITHOUT_ROWS = ['get_schema', 'call_method', 'create_class', 'delete_class', 'atlas_faceted_search'];

describe('a database that is sharded by the tenant', () => {
  it.each(CALLS)(
    'every read and change by %s %j has an equality on the tenant that the router can use',
    async (tool, args) => {
      const events = await commandsOf(tool, args);
      expect(onRows(events)).not.toEqual([]);
      expect(strays(events)).toEqual([]);
    },
  );

  it('has one such call at least for every tool that takes a class', async () => {
    const { result } = await ask('tools/list', {});
    const takesClass = (result?.tools ?? []).filter(
      ({ inputSchema }) => 'class_name' in (inputSchema['properties'] ?? {}),
    );
    const tried = new Set([...CALLS.map(([tool]) => tool), ...WITHOUT_ROWS]);
    expect(takesClass.map(({ name }) => name).filter((name) => !tried.has(name))).toEqual([]);
    expect(takesClass.length).toBeGreaterThan(20);
  });

  it.each(['parse://Doc/count', 'parse://Doc/samples'])(
    'reads %s at the shard of the tenant',
    async (uri) => {
      sent.length = 0;
      expect((await ask('resources/read', { uri })).error).toBeUndefined();
      expect(onRows(sent)).not.toEqual([]);
      expect(strays(sent)).toEqual([]);
    },
  );

  it('is asked for the tenant beside the rights of a user as well', async () => {
    for (const [tool, args] of [
      ['query_class', { ...Doc, where, include: ['shelf'] }],
      ['count_objects', Doc],
      ['aggregate', { ...Doc, pipeline: [{ $lookup: byName }] }],
      ['update_object', { ...Doc, object_id: 'tea1', fields: { rank: 4 } }],
    ] as const) {
      const events = await commandsOf(tool, args, 'ada');
      expect(onRows(events)).not.toEqual([]);
      expect(strays(events)).toEqual([]);
    }
  });

  it('is asked at every shard for an id that is none of the tenant, and only counts there', async () => {
    sent.length = 0;
    const answer = await ask('tools/call', { name: 'get_object', arguments: { ...Doc, object_id: 'tea9' } });
    expect(answer.result?.isError).toBe(true);
    const stray = onRows(sent).filter((event) => strays([event]).length > 0);
    expect(stray.map(({ command }) => command['pipeline'] as unknown)).toEqual([
      [expect.anything(), { $group: { _id: 1, n: { $sum: 1 } } }],
    ]);
  });

  it('never loses the equality, whatever the caller asks for', async () => {
    const condition = fc.letrec((tie) => ({
      where: fc.oneof(
        { maxDepth: 3 },
        fc.record({ topic: fc.constantFrom('tea', 'cof') }),
        fc.record({ rank: fc.record({ $gt: fc.integer({ min: 0, max: 9 }) }) }),
        fc.constant({ orgId: 'north' }),
        ...(['$and', '$or', '$nor'] as const).map((name) =>
          fc.array(tie('where'), { minLength: 1, maxLength: 3 }).map((branches) => ({ [name]: branches })),
        ),
      ),
    })).where as fc.Arbitrary<Condition>;
    await fc.assert(
      fc.asyncProperty(condition, async (filter) => {
        for (const [tool, args] of [
          ['query_class', { ...Doc, where: filter }],
          ['count_objects', { ...Doc, where: filter }],
          ['aggregate', { ...Doc, pipeline: [{ $match: filter }, { $count: 'n' }] }],
        ] as const) {
          const events = await commandsOf(tool, args);
          expect(onRows(events)).not.toEqual([]);
          expect(strays(events)).toEqual([]);
        }
      }),
      { numRuns: 40 },
    );
  });
});
