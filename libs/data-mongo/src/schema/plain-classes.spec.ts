import type { IdKind, PlainColumn } from '#policy';
import { Decimal128, Long, ObjectId, UUID } from 'mongodb';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PATIENT } from '#data/contracts';
import { TestDatabase } from '../test-database.contract.js';
import type { PlainClassDeclaration, StorageDeclarations } from './storage-declarations.js';

const declared = (
  className: string,
  collection: string,
  properties: Readonly<Record<string, PlainColumn>> = {},
  more: Partial<PlainClassDeclaration> = {},
): PlainClassDeclaration => ({
  className,
  collection,
  id: null,
  timestamps: null,
  properties: new Map(Object.entries(properties)),
  ...more,
});

describe('classes that Parse does not store', PATIENT, () => {
  let database: TestDatabase;
  let store: ReturnType<TestDatabase['openDeclared']>;
  beforeAll(async () => {
    database = await TestDatabase.start();
  });
  afterEach(() => store.close());
  afterAll(() => database.stop());

  const open = (...plain: PlainClassDeclaration[]) =>
    (store = database.openDeclared({ parse: new Set(), plain }));
  const insert = (collection: string, ...documents: object[]) =>
    store.connection.db.collection(collection).insertMany(documents);
  const readFields = async (className: string) =>
    Object.fromEntries((await store.catalogue.snapshot()).get(className)?.fields ?? []);
  const kinds = async () =>
    (await store.catalogue.problems()).map(({ className, property, kind }) => [className, property, kind]);

  it('have the columns of the declaration, then of the validator, then of a sample', async () => {
    open(
      declared('Order', 'orders', {
        total: { type: 'Number', field: 'sum' },
        lines: { type: 'Array', of: new Map<string, PlainColumn>([['sku', { type: 'String' }]]) },
        state: {},
      }),
    );
    await store.connection.db.createCollection('orders', {
      validator: {
        $jsonSchema: {
          required: ['state', 'sum', 'extra'],
          properties: {
            sum: { bsonType: 'decimal' },
            state: { bsonType: 'string' },
            extra: { bsonType: ['object', 'null'], properties: { level: { bsonType: 'int' } } },
          },
        },
      },
    });
    const valid = { sum: Decimal128.fromString('1'), state: 'x', extra: null };
    await insert(
      'orders',
      { ...valid, seen: 1, when: new Date(), __v: 0, at: { type: 'Point', coordinates: [1, 2] } },
      { ...valid, seen: 'text', when: null, tags: ['a'], deep: { more: [{ end: true }] } },
      { ...valid, seen: 2, file: new UUID() },
    );
    const fields = await readFields('Order');
    expect(fields).toEqual({
      objectId: { type: 'String' },
      total: { type: 'Number', origin: 'declared', required: true },
      lines: {
        type: 'Array',
        origin: 'declared',
        members: new Map([['sku', { type: 'String', origin: 'declared' }]]),
      },
      state: { type: 'String', origin: 'validator', required: true },
      extra: {
        type: 'Object',
        origin: 'validator',
        members: new Map([['level', { type: 'Number', origin: 'validator' }]]),
      },
      seen: { type: 'Number', origin: 'sample', seen: { Number: 2, String: 1 } },
      when: { type: 'Date', origin: 'sample', seen: { Date: 1, Null: 1 } },
      at: { type: 'GeoPoint', origin: 'sample', seen: { GeoPoint: 1 } },
      tags: {
        type: 'Array',
        origin: 'sample',
        seen: { Array: 1 },
        entries: { type: 'String', origin: 'sample', seen: { String: 1 } },
      },
      deep: expect.objectContaining({ type: 'Object', origin: 'sample' }) as unknown,
      file: { type: 'String', origin: 'sample', seen: { String: 1 } },
    });
    const members = fields['deep']?.members?.get('more')?.members;
    expect(members?.get('end')).toEqual({ type: 'Boolean', origin: 'sample', seen: { Boolean: 1 } });
    expect((await store.catalogue.snapshot()).get('Order')).toMatchObject({
      storage: 'plain',
      classLevelPermissions: null,
    });
    expect(await kinds()).toEqual([]);
  });

  it('exist where their collection does, and say what is wrong with the others', async () => {
    open(
      declared('Good', 'good'),
      declared('Absent', 'absent'),
      declared('Users', '_User'),
      declared('Views', 'system.views'),
      declared('Mixed', 'mixed'),
      declared('Declared', 'mixed', {}, { id: 'string' }),
      declared('Compound', 'compound'),
      declared('Leaky', 'leaky'),
      declared('Joins', 'joins'),
      declared('Fine', 'fine'),
      declared('Broken', 'broken', { name: { type: 'String' } }, { id: 'objectId' }),
      declared('Guessed', 'broken'),
      declared('Referring', 'good', { owner: { targetClass: 'Nobody' }, name: { type: 'Number' } }),
    );
    await store.connection.db.createCollection('good', {
      validator: { $jsonSchema: { properties: { name: { bsonType: 'string' } } } },
    });
    await insert('good', { name: 'x', owner: 'text' });
    await insert('mixed', { _id: 'text' as never }, { _id: new ObjectId() });
    await insert('compound', { _id: { a: 1 } as never });
    await insert('secrets', { x: 1 });
    const { db } = store.connection;
    await db.createCollection('leaky', { viewOn: 'secrets', pipeline: [] });
    await db.createCollection('joins', {
      viewOn: 'good',
      pipeline: [{ $facet: { a: [{ $unionWith: { coll: 'secrets', pipeline: [] } }] } }, { $unwind: '$a' }],
    });
    await db.createCollection('fine', {
      viewOn: 'good',
      pipeline: [{ $lookup: { from: 'mixed', localField: 'x', foreignField: 'y', as: 'z' } }],
    });
    await db.createCollection('broken', {
      viewOn: 'good',
      pipeline: [{ $project: { x: { $divide: ['$name', 0] } } }],
    });
    expect((await store.catalogue.snapshot()).classNames()).toEqual([
      'Broken',
      'Declared',
      'Fine',
      'Good',
      'Referring',
    ]);
    expect(await kinds()).toEqual([
      ['Absent', undefined, 'missing_collection'],
      ['Users', undefined, 'system_collection'],
      ['Views', undefined, 'system_collection'],
      ['Leaky', undefined, 'undeclared_source'],
      ['Joins', undefined, 'undeclared_source'],
      ['Broken', undefined, 'not_sampled'],
      ['Guessed', undefined, 'not_sampled'],
      ['Mixed', undefined, 'mixed_ids'],
      ['Compound', undefined, 'mixed_ids'],
      ['Guessed', undefined, 'mixed_ids'],
      ['Referring', 'owner', 'unknown_target'],
      ['Referring', 'name', 'type_conflict'],
    ]);
    expect(await readFields('Referring')).toMatchObject({ owner: { type: 'String' } });
    for (const { text } of await store.catalogue.problems()) expect(text).toMatch(/: /);
  });

  const documents: [string, readonly unknown[], string | null][] = [
    ['ObjectIds', [new ObjectId(), new ObjectId()], '65a000000000000000000001'],
    ['texts', ['a', 'b'], 'any text'],
    ['numbers of several types', [1, Long.fromString('9007199254740993'), 1.5], '9007199254740995'],
    ['UUIDs', [new UUID(), new UUID()], '0f8fad5b-d9cb-469f-a165-70867728950e'],
    ['nothing', [], '65a000000000000000000001'],
  ];
  it.each(documents)('have the ids that their documents have: %s', async (_title, ids, text) => {
    open(declared('Thing', 'things', { name: { type: 'String' } }));
    await store.connection.db.createCollection('things');
    if (ids.length > 0) await insert('things', ...ids.map((_id) => ({ _id })));
    const { writer } = store;
    const operation = { maxTimeMS: 10_000, comment: 'test', signal: new AbortController().signal };
    expect(await writer.create('Thing', { name: 'x' }, operation, text ?? '')).toMatchObject({
      objectId: text,
      name: 'x',
    });
  });

  const mixtures: [string, IdKind, (at: number) => unknown, (at: number) => unknown, boolean][] = [
    ['texts before ObjectIds', 'objectId', (at) => `a${at}`, () => new ObjectId(), true],
    ['numbers before texts', 'string', (at) => at, (at) => `a${at}`, true],
    ['UUIDs before ObjectIds', 'objectId', () => new UUID(), () => new ObjectId(), true],
    ['numbers of several types', 'number', (at) => at, (at) => Long.fromNumber(1_000 + at), false],
    ['texts alone', 'string', (at) => `a${at}`, (at) => `b${at}`, false],
  ];
  it.each(mixtures)(
    'know that ids are of several types, however many newer ones are of one: %s',
    async (_title, id, older, newer, isMixed) => {
      open(declared('Guessed', 'things'), declared('Thing', 'things', {}, { id }));
      const ids = [0, 1, 2].map(older).concat(Array.from({ length: 150 }, (_, at) => newer(at)));
      await insert('things', ...ids.map((_id) => ({ _id })));
      const snapshot = await store.catalogue.snapshot();
      expect(snapshot.get('Guessed') === undefined).toBe(isMixed);
      expect(snapshot.get('Thing')?.mixedIds ?? false).toBe(isMixed);
    },
  );

  it('follow the declarations when the configuration changes', async () => {
    store = database.openDeclared({ parse: 'all', plain: [] });
    await insert('things', { _id: 'a' as never, name: 'x' });
    const declarations: { current: StorageDeclarations } = { current: { parse: 'all', plain: [] } };
    const { MongoSchemaCatalogue } = await import('./mongo-schema-catalogue.js');
    const catalogue = new MongoSchemaCatalogue(store.connection, { declared: () => declarations.current });
    expect((await catalogue.snapshot()).classNames()).toEqual([]);
    declarations.current = { parse: new Set(), plain: [declared('Thing', 'things')] };
    catalogue.invalidate();
    expect((await catalogue.snapshot()).classNames()).toEqual(['Thing']);
  });

  it('read a sample once in a while, and the classes of Parse only where some are declared', async () => {
    store = database.openDeclared({ parse: new Set(), plain: [] });
    await insert('things', { name: 'x' });
    const uri = `${database.uri}${database.uri.includes('?') ? '&' : '/?'}monitorCommands=true`;
    const { MongoConnection } = await import('../connection/mongo-connection.js');
    const { MongoSchemaCatalogue } = await import('./mongo-schema-catalogue.js');
    const connection = new MongoConnection({ uri, database: store.connection.db.databaseName });
    let clock = 0;
    const catalogue = new MongoSchemaCatalogue(connection, {
      declared: () => ({
        parse: new Set(),
        plain: [declared('Thing', 'things'), declared('Other', 'things')],
      }),
      now: () => clock,
      maxAge: 1000,
    });
    const commands: string[] = [];
    connection.db.client.on('commandStarted', ({ commandName }) => commands.push(commandName));
    await catalogue.snapshot();
    expect(commands).toEqual(['listCollections', 'find']);
    clock = 10_001;
    await catalogue.snapshot();
    expect(commands).toEqual(['listCollections', 'find', 'listCollections']);
    clock = 11 * 60 * 1000;
    await catalogue.snapshot();
    expect(commands.slice(3)).toEqual(['listCollections', 'find']);
    await connection.close();
  });
});
