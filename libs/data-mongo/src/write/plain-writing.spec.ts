import type { IdKind, PlainColumn } from '#policy';
import { Decimal128, Double, Int32, Long, ObjectId, UUID } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ParseRow, StoreError } from '#data';
import { PATIENT, storeErrorCode, unhurried } from '#data/contracts';
import { TestDatabase } from '../test-database.contract.js';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const ADA = '65a000000000000000000001';

const declared = (
  className: string,
  collection: string,
  id: IdKind | null,
  properties: Readonly<Record<string, PlainColumn>> = {},
  timestamps: { createdAt: string; updatedAt: string } | null = { createdAt: 'made', updatedAt: 'changed' },
) => ({ className, collection, id, timestamps, properties: new Map(Object.entries(properties)) });

describe('writes to collections that Parse did not write', PATIENT, () => {
  let database: TestDatabase;
  let store: ReturnType<TestDatabase['openDeclared']>;
  beforeAll(async () => {
    database = await TestDatabase.start();
    store = database.openDeclared({
      parse: new Set(),
      plain: [
        declared('Order', 'orders', 'objectId', {
          customer: { targetClass: 'Customer', field: 'customer_id' },
          followers: { type: 'Array', targetClass: 'Customer' },
          total: { type: 'Number' },
          lines: { type: 'Array', of: new Map<string, PlainColumn>([['price', { type: 'Number' }]]) },
          place: { type: 'GeoPoint' },
          when: { type: 'Date' },
          note: { type: 'String' },
        }),
        declared('Customer', 'customers', null),
        declared('Ticket', 'tickets', 'number', { title: { type: 'String' } }),
        declared('Visit', 'visits', 'uuid', { page: { type: 'String' } }, null),
        declared('Word', 'words', 'string', { text: { type: 'String' } }),
        declared('Open', 'open_orders', null),
        declared('Log', 'logs', 'objectId', { text: { type: 'String' } }),
      ],
    });
    const { db } = store.connection;
    await db.createCollection('orders', {
      validator: {
        $jsonSchema: {
          bsonType: 'object',
          required: ['status'],
          properties: {
            status: { enum: ['open', 'paid'], bsonType: 'string' },
            total: { bsonType: ['decimal', 'null'] },
            views: { bsonType: 'long' },
            rate: { bsonType: 'double' },
            pieces: { bsonType: 'int' },
            token: { bsonType: 'objectId' },
            lines: { bsonType: 'array', items: { properties: { price: { bsonType: 'decimal' } } } },
          },
        },
      },
    });
    await db.createCollection('open_orders', {
      viewOn: 'orders',
      pipeline: [{ $match: { status: 'open' } }],
    });
    await db.createCollection('logs', { capped: true, size: 100_000 });
    for (const name of ['tickets', 'visits', 'words']) await db.createCollection(name);
    await db.collection('customers').insertOne({ _id: ObjectId.createFromHexString(ADA), age: 5 });
  });
  beforeEach(async () => {
    await store.connection.db.collection('orders').deleteMany({});
  });
  afterAll(async () => {
    await store.close();
    await database.stop();
  });

  const create = (className: string, fields: ParseRow, id?: string) =>
    store.writer.create(className, fields, unhurried(), id);
  const update = (id: unknown, fields: ParseRow) =>
    store.writer.update('Order', String(id), fields, {}, unhurried());
  const stored = (collection: string, promoteValues = false) =>
    store.connection.db.collection(collection).findOne({}, { promoteValues });

  it('store every value in the type of its column, and give it back', async () => {
    const fields = {
      status: 'open',
      customer: pointer('Customer', ADA),
      followers: [pointer('Customer', ADA)],
      total: '12.50',
      views: '9007199254740993',
      rate: 5,
      pieces: 3,
      token: ADA,
      lines: [{ price: '0.10', sku: 'a' }],
      place: { __type: 'GeoPoint', latitude: 48, longitude: 16 },
      when: { __type: 'Date', iso: '2026-01-02T03:04:05.678Z' },
    };
    const row = await create('Order', fields);
    expect(row).toMatchObject(fields);
    expect(row['objectId']).toMatch(/^[0-9a-f]{24}$/);
    expect(row['createdAt']).toMatch(/Z$/);
    expect(await stored('orders')).toEqual({
      _id: ObjectId.createFromHexString(String(row['objectId'])),
      status: 'open',
      customer_id: ObjectId.createFromHexString(ADA),
      followers: [ObjectId.createFromHexString(ADA)],
      total: Decimal128.fromString('12.50'),
      views: Long.fromString('9007199254740993'),
      rate: new Double(5),
      pieces: new Int32(3),
      token: ObjectId.createFromHexString(ADA),
      lines: [{ price: Decimal128.fromString('0.10'), sku: 'a' }],
      place: { type: 'Point', coordinates: [new Int32(16), new Int32(48)] },
      when: new Date('2026-01-02T03:04:05.678Z'),
      made: new Date(String(row['createdAt'])),
      changed: new Date(String(row['updatedAt'])),
    });
  });

  it('apply operations in the type of the column', async () => {
    const { objectId } = await create('Order', { status: 'open', total: '0.10', views: '1', followers: [] });
    const row = await update(objectId, {
      total: { __op: 'Increment', amount: '0.20' },
      views: { __op: 'Increment', amount: 2 },
      followers: { __op: 'AddUnique', objects: [pointer('Customer', ADA)] },
      lines: { __op: 'Add', objects: [{ price: 1 }] },
      note: null,
    });
    expect(row).toMatchObject({
      total: '0.30',
      views: '3',
      followers: [pointer('Customer', ADA)],
      lines: [{ price: '1' }],
      note: null,
    });
    expect(row?.['updatedAt']).not.toBe(undefined);
    expect(
      await update(objectId, {
        followers: { __op: 'Remove', objects: [pointer('Customer', ADA)] },
        note: { __op: 'Delete' },
      }),
    ).toMatchObject({ followers: [] });
    expect(await stored('orders')).not.toHaveProperty('note');
  });

  it('make ids of the kind of the class', async () => {
    const visit = await create('Visit', { page: '/' });
    expect(visit['objectId']).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect((await stored('visits'))?._id).toEqual(new UUID(String(visit['objectId'])));
    expect(Object.keys(visit).toSorted()).toEqual(['objectId', 'page']);
    expect((await create('Word', { text: 'w' }))['objectId']).toMatch(/^\w{10}$/);
    expect(await create('Ticket', { title: 't' }, '42')).toMatchObject({ objectId: '42' });
    await expect(create('Ticket', { title: 't' })).rejects.toMatchObject({
      code: 'unsupported',
      advice: expect.stringContaining('create them there') as unknown,
    });
    expect(await storeErrorCode(store.writer.idFor('Ticket', 'text', unhurried()))).toBe('unsupported');
    expect(await storeErrorCode(create('Word', { text: 'w' }, 'given'))).toBe(null);
    for (const [className, id] of [
      ['Order', 'x'],
      ['Visit', ADA],
      ['Ticket', 'x'],
    ] as const)
      expect(
        await storeErrorCode(create(className, className === 'Order' ? { status: 'open' } : {}, id)),
      ).toBe('invalid_query');
  });

  it.each(['Order', 'Visit', 'Word'])('make the same id of the same text for %s', async (className) => {
    const [one, same, other] = await Promise.all(
      ['a', 'a', 'b'].map((text) => store.writer.idFor(className, text, unhurried())),
    );
    expect(one).toBe(same);
    expect(one).not.toBe(other);
    const fields = className === 'Order' ? { status: 'open' } : {};
    expect(await create(className, fields, one)).toMatchObject({ objectId: one });
    expect(await storeErrorCode(create(className, fields, one))).toBe('duplicate');
  });

  const unfit: [string, ParseRow][] = [
    ['a column that is only inferred', { age: 6 }],
    ['a column that nobody declared', { anything: 1 }],
    ['a stored name', { customer_id: ADA }],
    ['the id', { _id: ADA }],
    ['a time stamp under its stored name', { made: { __type: 'Date', iso: '2026-01-01T00:00:00.000Z' } }],
    ['an ACL', { ACL: { '*': { read: true } } }],
    ['a reference to another class', { customer: pointer('Visit', ADA) }],
    ['a reference that is no id of its class', { customer: pointer('Customer', 'x') }],
    ['a bare id for a reference', { customer: ADA }],
    ['text that is no ObjectId', { token: 'x' }],
    ['text that is no number', { total: 'many' }],
    ['a whole number beyond its column', { pieces: 2 ** 31 }],
    ['a fraction for a whole number', { views: 1.5 }],
    ['more digits than a double holds', { rate: '0.1000000000000000000001' }],
    ['more digits than a decimal holds', { total: '1.0000000000000000000000000000000000001' }],
    ['an operator', { note: { $set: 1 } }],
    ['an operator inside a document', { lines: [{ $where: 1 }] }],
    ['a pointer inside a document that declares none', { lines: [{ by: pointer('Customer', ADA) }] }],
  ];
  it.each(unfit)('refuse %s', async (_title, fields) => {
    const { objectId } = await create('Order', { status: 'open' });
    expect(await storeErrorCode(create('Order', { status: 'open', ...fields }))).toBe('invalid_query');
    expect(await storeErrorCode(update(objectId, fields))).toBe('invalid_query');
    if ('age' in fields) expect(await storeErrorCode(create('Customer', fields))).toBe('invalid_query');
    expect(await store.connection.db.collection('orders').countDocuments()).toBe(1);
  });

  it('say what to do when the validator refuses a row, without its values', async () => {
    const refused = await create('Order', { status: 'lost' }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StoreError);
    expect(refused).toMatchObject({
      code: 'rejected',
      advice: expect.stringContaining('every column that the class requires') as unknown,
    });
    expect(refused).toHaveProperty('outcome', undefined);
    expect((refused as StoreError).advice).not.toContain('lost');
    const { objectId } = await create('Order', { status: 'open' });
    expect(await storeErrorCode(update(objectId, { status: 'lost' }))).toBe('rejected');
    expect(await storeErrorCode(create('Order', {}))).toBe('invalid_query');
  });

  it('are refused where the collection permits none', async () => {
    const { objectId } = await create('Order', { status: 'open' });
    const id = String(objectId);
    expect(await storeErrorCode(create('Open', { status: 'open' }))).toBe('unsupported');
    expect(await storeErrorCode(store.writer.update('Open', id, { status: 'paid' }, {}, unhurried()))).toBe(
      'unsupported',
    );
    expect(await storeErrorCode(store.writer.delete('Open', id, {}, unhurried()))).toBe('unsupported');
    const log = await create('Log', { text: 'first' });
    expect(await storeErrorCode(store.writer.delete('Log', String(log['objectId']), {}, unhurried()))).toBe(
      'unsupported',
    );
    expect(await store.writer.delete('Order', id, { status: 'paid' }, unhurried())).toBe(false);
    expect(await store.writer.delete('Order', id, { status: 'open' }, unhurried())).toBe(true);
  });

  it('never change a class: its columns are declared', async () => {
    const { schemaWriter } = store;
    for (const className of ['Order', 'Open', 'New']) {
      const fields = new Map([['x', { type: 'String' as const }]]);
      expect(await storeErrorCode(schemaWriter.createClass({ className, fields }, unhurried()))).toBe(
        'unsupported',
      );
      expect(await storeErrorCode(schemaWriter.deleteClass(className, unhurried()))).toBe('unsupported');
    }
    const names = (await store.connection.db.listCollections().toArray()).map(({ name }) => name);
    expect(names).not.toContain('_SCHEMA');
  });
});
