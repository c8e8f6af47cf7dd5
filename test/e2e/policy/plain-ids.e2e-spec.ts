import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Binary, Decimal128, Long, MongoClient, ObjectId, UUID } from 'mongodb';
import { AgentMethod, type MethodCall, Parley, ParleyModule, ParseClass } from '@parley/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const HEX = '64b5f0a1c2d3e4f5a6b7c8d9';
const UUID_TEXT = '0f8fad5b-d9cb-469f-a165-70867728950e';
const LONGEST = 'ä'.repeat(256);

/** Of each kind: the `_id` that a program stored, and the text that agents meet. */
const KINDS = {
  Document: { id: 'objectId', ids: [[new ObjectId(HEX), HEX]] },
  Article: {
    id: 'string',
    ids: [
      'SKU-001/ä b',
      'ann@example.com',
      '1.5',
      HEX,
      UUID_TEXT,
      'Document$x',
      '__proto__',
      '$ne',
      'two\nlines "quoted"',
      LONGEST,
    ].map((id) => [id, id]),
  },
  Counted: {
    id: 'number',
    ids: [
      [7, '7'],
      [-3, '-3'],
      [1.5, '1.5'],
      [Long.fromString('9007199254740993'), '9007199254740993'],
      [Decimal128.fromString('0.1000000000000000000001'), '0.1000000000000000000001'],
    ],
  },
  Device: { id: 'uuid', ids: [[new UUID(UUID_TEXT), UUID_TEXT]] },
} as const satisfies Record<string, { id: string; ids: readonly (readonly [unknown, string])[] }>;

type ClassName = keyof typeof KINDS;
const CASES = (Object.keys(KINDS) as ClassName[]).flatMap((className) =>
  KINDS[className].ids.map(([id, text]) => [className, text, id as unknown as string] as const),
);
const NAMES = Object.keys(KINDS) as ClassName[];

const pointerTo = (className: string) => ({ type: 'Pointer', targetClass: className });
const classes = {
  ...Object.fromEntries(
    NAMES.map((className) => [
      className,
      { id: KINDS[className].id, properties: { name: { type: 'String' } }, fields: ['name'] },
    ]),
  ),
  Link: {
    properties: {
      name: { type: 'String' },
      ...Object.fromEntries(NAMES.map((className) => [`to${className}`, pointerTo(className)])),
      all: { type: 'Array', targetClass: 'Article' },
    },
    fields: ['name', 'all', ...NAMES.map((className) => `to${className}`)],
  },
};

const MANY = 2_500;

/** What an application declares for a class of its own. */
@ParseClass('Article')
@Injectable()
class ArticleMethods {
  @AgentMethod({ type: 'instance' })
  named(_args: object, call: MethodCall) {
    return { id: call.objectId, name: call.receiver?.['name'] };
  }
}

let database: Database;
let documents: MongoClient;
let service: Service;
beforeAll(async () => {
  database = await startDatabase({ schemas: [] });
  documents = new MongoClient(database.uriOf('ids'));
  for (const className of NAMES)
    await collection(className).insertMany(
      KINDS[className].ids.map(([id, text]) => ({
        _id: id as unknown as string,
        name: `row ${text.slice(0, 20)}`,
      })),
    );
  await collection('Link').insertMany(
    CASES.map(([className, text, id]) => ({
      _id: new ObjectId() as never,
      name: `${className} ${text}`,
      [`to${className}`]: id,
      ...(className === 'Article' && { all: [id] }),
    })),
  );
  await collection('Many').insertMany(
    Array.from({ length: MANY }, (_, index) => ({ _id: (index - 20) as never, name: 'x' })),
  );
  await collection('Several').insertMany([
    { _id: 7 as never, name: 'x' },
    ...Array.from({ length: MANY }, (_, index) => ({ _id: `a${index}`, name: 'x' })),
  ]);
  service = await startService({
    config: {
      database: { uri: database.uriOf('ids'), storage: 'plain' },
      agents: { all: { permissions: 'admin', rateLimit: 1_000_000 } },
      auth: [{ apiKey: 'all', agent: 'all' }],
      policy: {
        classes: {
          ...classes,
          Many: { id: 'number', fields: ['name'] },
          Several: { id: 'string', fields: ['name'] },
        },
      },
    },
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
});
afterAll(async () => {
  await service.stop();
  await documents.close();
  await database.stop();
});

/** The type of the driver knows one kind of id for a collection. */
interface Stored {
  _id: string;
  [column: string]: unknown;
}
const collection = (name: string) => documents.db().collection<Stored>(name);
const HEADERS = { 'X-MCP-API-Key': 'all' };
const ask = (tool: string, className: string, args: object = {}) =>
  callTool(service, tool, { class_name: className, ...args }, HEADERS);
async function read(tool: string, className: string, args: object = {}): Promise<Record<string, unknown>> {
  const { isError, text, rpcError, data } = await ask(tool, className, args);
  expect([isError, rpcError, text.slice(0, 300)]).toEqual([false, undefined, expect.any(String)]);
  return data;
}
const rowsOf = (data: Record<string, unknown>) => data['results'] as Record<string, unknown>[];
const namesOf = (data: Record<string, unknown>) => rowsOf(data).map(({ name }) => name);
const nameOf = (text: string) => `row ${text.slice(0, 20)}`;

describe('an id of a plain class, of any kind', () => {
  it.each(CASES)('of %s, %j, is exact in every tool that takes one', async (className, text, stored) => {
    expect(await read('get_object', className, { object_id: text })).toMatchObject({
      object_id: text,
      object: { objectId: text, name: nameOf(text) },
    });
    const several = await read('get_objects', className, { ids: [text] });
    expect(several).toMatchObject({ found: 1, missing: [] });
    expect(Object.entries(several['objects'] as object)).toEqual([
      [text, expect.objectContaining({ objectId: text })],
    ]);
    expect(namesOf(await read('query_class', className, { where: { objectId: text } }))).toEqual([
      nameOf(text),
    ]);
    expect(await read('count_objects', className, { where: { objectId: { $in: [text] } } })).toMatchObject({
      count: 1,
    });
    expect(
      await read('count_objects', className, { where: { objectId: { $gte: text, $lte: text } } }),
    ).toMatchObject({ count: 1 });

    await read('update_object', className, { object_id: text, fields: { name: 'changed' } });
    expect(await collection(className).findOne({ _id: stored })).toMatchObject({ name: 'changed' });
    await read('delete_object', className, { object_id: text });
    expect(await collection(className).countDocuments({ _id: stored })).toBe(0);
    await collection(className).insertOne({ _id: stored, name: nameOf(text) });
  });

  it.each(CASES)(
    'of %s, %j, is exact in pointers, joins, groups and exports',
    async (className, text, stored) => {
      const field = `to${className}`;
      const pointer = { __type: 'Pointer', className, objectId: text };
      const name = `${className} ${text}`;
      const first = await read('query_class', 'Link', { where: { [field]: pointer }, include: [field] });
      expect(namesOf(first)).toEqual([name]);
      expect(rowsOf(first)[0]?.[field]).toMatchObject({ objectId: text, name: nameOf(text) });
      expect(namesOf(await read('query_class', 'Link', { where: { [field]: text } }))).toEqual([name]);
      const inside = { $inQuery: { className, where: { objectId: text } } };
      expect(namesOf(await read('query_class', 'Link', { where: { [field]: inside } }))).toEqual([name]);
      expect(
        rowsOf(await read('query_class', 'Link', { where: { [field]: pointer } }))[0]?.[field],
      ).toMatchObject({
        class: className,
        id: text,
      });
      const groups = await read('group_by', 'Link', { field, where: { [field]: pointer } });
      expect(groups['groups']).toEqual([{ key: text, value: 1 }]);
      const joined = await read('aggregate', 'Link', {
        pipeline: [
          { $match: { name } },
          { $lookup: { from: className, localField: field, foreignField: 'objectId', as: 'found' } },
          { $unwind: '$found' },
          { $project: { who: '$found.name' } },
        ],
      });
      expect(rowsOf(joined)).toEqual([expect.objectContaining({ who: nameOf(text) })]);
      const file = await read('export_data', 'Link', { format: 'csv', where: { [field]: pointer } });
      expect(file['output']).toContain(JSON.stringify(text).replaceAll('"', '""'));

      const created = await read('create_object', 'Link', { fields: { name: 'new', [field]: pointer } });
      const id = new ObjectId(String(created['object_id'])) as never;
      expect(await collection('Link').findOne({ _id: id })).toMatchObject({ [field]: stored });
      await collection('Link').deleteOne({ _id: id });
    },
  );

  it.each(NAMES)(
    'of %s is refused where no row can have it, and finds nothing in another spelling',
    async (className) => {
      for (const [id, reason] of [
        ['a\0b', '512 bytes'],
        ['ä'.repeat(257), '512 bytes'],
        [`${HEX}\uD800`, 'surrogate'],
      ] as const) {
        const { isError, code, text } = await ask('get_object', className, { object_id: id });
        expect([id.slice(0, 9), isError, code]).toEqual([id.slice(0, 9), true, 'invalid_argument']);
        expect(text).toContain(reason);
        for (const tool of ['update_object', 'delete_object'])
          expect(await ask(tool, className, { object_id: id, fields: { name: 'x' } })).toMatchObject({
            isError: true,
          });
        expect(await ask('get_objects', className, { ids: [id] })).toMatchObject({ isError: true });
      }
      for (const id of [
        HEX.toUpperCase(),
        UUID_TEXT.toUpperCase(),
        '07',
        '+7',
        '7.0',
        '1.50',
        ' 7',
        'NaN',
        'Infinity',
      ])
        expect([id, (await read('get_objects', className, { ids: [id] }))['found']]).toEqual([id, 0]);
    },
  );

  it('is a prompt argument as it is', async () => {
    const text = 'SKU-001/ä b';
    const prompt = (parent: string, id: string) =>
      rpc(
        service,
        'prompts/get',
        {
          name: 'find_relationship',
          arguments: { parent_class: parent, parent_id: id, child_class: 'Link', pointer_field: 'toArticle' },
        },
        HEADERS,
      );
    expect((await prompt('Article', text)).text).toContain(text);
    expect((await prompt('Document', HEX)).body.error).toBeUndefined();
    expect((await prompt('Missing', text)).body.error?.message).toContain('alphanumeric');
    expect((await prompt('Article', 'a\0b')).body.error?.message).toContain('alphanumeric');
  });

  it('is the object of a declared method', async () => {
    const parley = ParleyModule.forRoot({
      database: { uri: database.uriOf('ids'), storage: 'plain' },
      agents: { all: {} },
      policy: { classes: { Article: { id: 'string', fields: ['name'] }, Document: { fields: ['name'] } } },
    });
    const made = { imports: [parley], providers: [ArticleMethods] };
    const app = await (await Test.createTestingModule(made).compile()).init();
    try {
      const served = app.get(Parley);
      const call = async (object_id: string) => {
        const params = {
          name: 'call_method',
          arguments: { class_name: 'Article', method_name: 'named', object_id },
        };
        const agent = served.agentFor({ agent: 'all', principal: 'test' });
        const { body } = await served.handle({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, agent);
        return JSON.stringify(body);
      };
      for (const [, text] of KINDS.Article.ids)
        expect(await call(text)).toContain(JSON.stringify({ id: text, name: nameOf(text) }));
      expect(await call('a\0b')).toContain('512 bytes');
    } finally {
      await app.close();
    }
  });

  it('orders an export of many rows whose ids are numbers', async () => {
    const ticket = await read('export_data', 'Many', { delivery: 'resource' });
    const response = await fetch(service.origin + String(ticket['path']), { headers: HEADERS });
    const lines = (await response.text()).trim().split('\n');
    expect(lines).toHaveLength(MANY + 1);
  });

  it('orders no export where documents have ids of several types, of which it would leave out some', async () => {
    const { code, text } = await ask('export_data', 'Several', { delivery: 'resource' });
    expect([code, text]).toEqual(['not_implemented', expect.stringContaining('ids of several types')]);
    expect(await read('export_data', 'Several', { limit: 1 })).toMatchObject({ row_count: 1 });
    expect(await read('count_objects', 'Several')).toMatchObject({ count: MANY + 1 });
  });
});

describe('a start with plain classes alone', () => {
  it('does not warn of rights that no row has', () => {
    expect(service.output().stderr).not.toContain('master posture');
  });
});

describe('a new row of a plain class', () => {
  it('gets an id of the kind of its class', async () => {
    const forms: Partial<Record<ClassName, (id: unknown) => boolean>> = {
      Document: (id) => id instanceof ObjectId,
      Article: (id) => typeof id === 'string',
      Device: (id) => id instanceof Binary && id.sub_type === Binary.SUBTYPE_UUID,
    };
    for (const [className, isOfKind] of Object.entries(forms)) {
      const created = await read('create_object', className, { fields: { name: 'new' } });
      const [row] = await collection(className).find({ name: 'new' }).toArray();
      expect([className, isOfKind(row?._id)]).toEqual([className, true]);
      await read('delete_object', className, { object_id: created['object_id'] });
    }
  });

  it.each(['Document', 'Article', 'Device'])(
    'of %s is one for a key, however often it is sent',
    async (className) => {
      const call = { fields: { name: 'keyed' }, idempotency_key: `one:${className}` };
      const answers = await Promise.all([1, 2].map(() => ask('create_object', className, call)));
      const again = await read('create_object', className, call);
      expect(await collection(className).countDocuments({ name: 'keyed' })).toBe(1);
      for (const { isError, data } of answers)
        if (!isError) expect(data['object_id']).toBe(again['object_id']);
      const others = await ask('create_object', className, { ...call, fields: { name: 'other' } });
      expect(others).toMatchObject({ isError: true, code: 'invalid_argument' });
      const id = again['object_id'];
      const update = { object_id: id, fields: { name: 'kept' }, idempotency_key: `two:${className}` };
      await read('update_object', className, update);
      await collection(className).updateOne({ name: 'kept' }, { $set: { name: 'changed by its program' } });
      await read('update_object', className, update);
      expect(await collection(className).countDocuments({ name: 'changed by its program' })).toBe(1);
      const removal = { object_id: id, idempotency_key: `three:${className}` };
      await read('delete_object', className, removal);
      await read('delete_object', className, removal);
      expect(await collection(className).countDocuments({ name: 'changed by its program' })).toBe(0);
    },
  );

  it('is refused where ids are numbers, with a key or without', async () => {
    for (const more of [{}, { idempotency_key: 'one:number' }]) {
      const answer = await ask('create_object', 'Counted', { fields: { name: 'keyed' }, ...more });
      expect(answer).toMatchObject({ isError: true });
      expect([answer.code, answer.text]).toEqual([
        'not_implemented',
        expect.stringContaining('only the application'),
      ]);
    }
    expect(await collection('Counted').countDocuments({ name: 'keyed' })).toBe(0);
  });
});
