import { MongoConnection } from '#data-mongo';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, type Service, startService } from '../../support/service.js';

const headers = { 'X-MCP-API-Key': 'key' };
const STAMPS = { _created_at: new Date(0), _updated_at: new Date(0) };

/** Texts of a column of texts, as people write them. */
const TEXTS = ['US$5', 'Price$100 each', 'Vault$v1', 'plain'];
const POINTER = { __type: 'Pointer', className: 'Vault', objectId: 'v9' };

let embedded: EmbeddedMongo;
let service: Service;
beforeAll(async () => {
  embedded = await EmbeddedMongo.start();
  const { uri } = embedded;
  const database = new MongoConnection({ uri, database: 'texts', timeout: 60_000 });
  const { db } = database;
  await db.collection<{ _id: string }>('_SCHEMA').insertMany([
    {
      _id: 'Item',
      objectId: 'string',
      createdAt: 'date',
      updatedAt: 'date',
      text: 'string',
      n: 'number',
      bag: 'object',
      list: 'array',
    },
    { _id: 'Vault', objectId: 'string', createdAt: 'date', updatedAt: 'date', code: 'string' },
  ] as never[]);
  await db.collection<{ _id: string }>('Item').insertMany([
    ...TEXTS.map((text, n) => ({ _id: `i${n}`, text, n, bag: { of: text }, list: [text], ...STAMPS })),
    // Another program stored an object in a column of texts, and one in a column of numbers.
    { _id: 'odd', text: { inner: POINTER, days: 41 }, n: { secret: POINTER }, ...STAMPS },
  ] as never[]);
  await db.collection<{ _id: string }>('Vault').insertOne({ _id: 'v1', code: 'c', ...STAMPS } as never);
  await db
    .collection<{ _id: string }>('notes')
    .insertMany([{ _id: 'p1', text: 'Vault$v1', deep: { texts: ['US$5', 'Vault$v2'] } }] as never[]);
  await database.close();
  service = await startService({
    config: {
      agents: { reader: { rateLimit: 1_000_000 } },
      auth: [{ apiKey: 'key', agent: 'reader' }],
      database: { uri, name: 'texts' },
      policy: {
        unlistedClasses: 'refuse',
        classes: { Item: {}, Vault: { hidden: true }, Note: { collection: 'notes', storage: 'plain' } },
      },
    },
  });
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await embedded?.close();
});

const ask = (tool: string, args: Record<string, unknown>) =>
  callTool(service, tool, { class_name: 'Item', ...args }, headers);
const aggregate = (...pipeline: object[]) => ask('aggregate', { pipeline });
const TEXT_ROWS = { $match: { objectId: { $ne: 'odd' } } };

describe('a text in a column of texts', { timeout: 60_000 }, () => {
  it('is the text in every answer, whatever class it seems to name', async () => {
    const answers = await Promise.all([
      ask('query_class', { where: { objectId: { $ne: 'odd' } }, keys: ['text'] }),
      ask('query_class', { where: { objectId: { $ne: 'odd' } }, keys: ['text'], format: 'csv' }),
      ask('get_objects', { ids: ['i0', 'i1', 'i2', 'i3'], keys: ['text'] }),
      aggregate(TEXT_ROWS, { $project: { text: 1 } }),
      aggregate(TEXT_ROWS, { $project: { whole: { $concat: ['$text', ''] } } }),
      aggregate(TEXT_ROWS, { $project: { whole: { $toString: '$text' } } }),
      aggregate(TEXT_ROWS, { $group: { _id: '$text' } }),
      aggregate(TEXT_ROWS, { $group: { _id: null, all: { $push: '$text' } } }),
      aggregate(TEXT_ROWS, { $replaceWith: { inner: { text: '$text' } } }),
      aggregate(TEXT_ROWS, { $facet: { a: [{ $project: { text: 1 } }] } }),
      ask('distinct', { field: 'text', where: { objectId: { $ne: 'odd' } } }),
      ask('group_by', { field: 'text', where: { objectId: { $ne: 'odd' } } }),
      ask('export_data', { where: { objectId: { $ne: 'odd' } }, columns: ['text'], format: 'csv' }),
    ]);
    for (const [index, { text }] of answers.entries()) {
      for (const written of TEXTS) expect([index, text]).toEqual([index, expect.stringContaining(written)]);
      expect([index, text]).toEqual([index, expect.not.stringContaining('__redacted')]);
    }
    const one = await ask('get_object', { object_id: 'i2', keys: ['text'] });
    expect(one.data['object']).toMatchObject({ text: 'Vault$v1' });
  });

  it('is compared as any text', async () => {
    const found = await ask('query_class', { where: { text: 'Vault$v1' }, keys: ['text'] });
    expect(found.data['results']).toMatchObject([{ objectId: 'i2', text: 'Vault$v1' }]);
    expect((await ask('count_objects', { where: { text: { $regex: '^Vault' } } })).data['count']).toBe(1);
    const matched = await aggregate({ $match: { $expr: { $eq: ['$text', { $literal: 'Vault$v1' }] } } });
    expect(matched.data['result_count']).toBe(1);
  });

  it('is text in a collection of another program, at any depth', async () => {
    for (const answer of [
      await callTool(service, 'query_class', { class_name: 'Note' }, headers),
      await callTool(service, 'aggregate', { class_name: 'Note', pipeline: [{ $limit: 5 }] }, headers),
    ]) {
      for (const written of ['Vault$v1', 'US$5', 'Vault$v2']) expect(answer.text).toContain(written);
      expect(answer.text).not.toContain('__redacted');
    }
  });
});

describe('a text in a column of objects or lists', { timeout: 60_000 }, () => {
  it('is a pointer where it names a class, and text where it names none', async () => {
    for (const { text } of [
      await ask('query_class', { where: { objectId: { $ne: 'odd' } }, keys: ['bag', 'list'] }),
      await aggregate(TEXT_ROWS, { $project: { bag: 1, list: 1 } }),
      await aggregate(TEXT_ROWS, {
        $project: { all: { $objectToArray: '$bag' }, one: '$bag.of', first: { $first: '$list' } },
      }),
    ]) {
      expect(text).toContain('US$5');
      expect(text).toContain('Price$100 each');
      expect(text).not.toContain('Vault$v1');
      expect(text).toContain('__redacted');
    }
  });
});

describe('an object in a column of texts or numbers', { timeout: 60_000 }, () => {
  const ROW = { $match: { objectId: 'odd' } };

  it('shows nothing of a withheld class, on no road', async () => {
    const read = await ask('get_object', { object_id: 'odd', keys: ['text', 'n'] });
    expect(read.text).toContain('"className":"Vault","__redacted":true');
    for (const answer of [
      read,
      await ask('query_class', { where: { objectId: 'odd' } }),
      await aggregate(ROW, { $project: { text: 1, n: 1 } }),
      await aggregate(ROW, { $project: { x: { $objectToArray: '$$ROOT' } } }),
      await aggregate(ROW, { $group: { _id: '$text' } }),
      await aggregate(ROW, { $replaceWith: '$$ROOT' }),
      await aggregate(ROW, { $project: { x: { $getField: { field: 'inner', input: '$text' } } } }),
      await aggregate(ROW, {
        $project: { x: { $map: { input: [{ $objectToArray: '$text' }], in: '$$this.v.objectId' } } },
      }),
      await ask('distinct', { field: 'text' }),
      await ask('group_by', { field: 'text' }),
      await ask('export_data', { format: 'csv' }),
    ])
      expect(answer.text).not.toMatch(/v9/);
    const opened = await aggregate(ROW, { $project: { x: { $objectToArray: '$text' } } });
    expect(opened.text).not.toMatch(/v9|41/);
  });

  it('is not looked into', async () => {
    for (const answer of [
      await ask('query_class', { where: { 'text.inner.objectId': 'v9' } }),
      await ask('query_class', { where: { text: { inner: { objectId: 'v9' } } } }),
      await ask('query_class', { where: { 'n.secret.objectId': 'v9' } }),
      await ask('query_class', { order: 'text.days' }),
      await aggregate({ $match: { 'text.days': 41 } }),
      await aggregate({ $match: { text: { $elemMatch: { objectId: 'v9' } } } }),
      await aggregate({ $match: { $expr: { $eq: ['$text.days', 41] } } }),
      await aggregate({ $project: { x: '$text.days' } }),
      await aggregate({ $project: { x: '$n.secret.objectId' } }),
    ])
      expect(answer.code).toMatch(/invalid_query|invalid_argument/);
  });
});
