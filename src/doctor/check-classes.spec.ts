import { MongoClient, ObjectId, type Db, type Document } from 'mongodb';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MongoConnection } from '#data-mongo';
import { readConfig } from '#config';
import { checkClasses } from './check-classes.js';

let server: EmbeddedMongo;
let client: MongoClient;
let db: Db;
let made = 0;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = await MongoClient.connect(server.uri);
});
afterAll(async () => {
  await client.close();
  await server.close();
});
beforeEach(() => void (db = client.db(`classes-${(made += 1)}`)));

type Classes = Readonly<Record<string, object>>;

const policyOf = (storage: string, classes: Classes) =>
  readConfig({ database: { uri: server.uri, storage }, policy: { classes } }).policy;

async function checked(classes: Classes) {
  const connection = new MongoConnection({ uri: server.uri, database: db.databaseName });
  try {
    return await checkClasses(policyOf('plain', classes), connection);
  } finally {
    await connection.close();
  }
}

const fill = (collection: string, ...rows: Document[]) => db.collection(collection).insertMany(rows);
const Order = { collection: 'orders' };

describe('plain classes', () => {
  it('are good when their collections are there', async () => {
    await fill('orders', { number: 1 });
    expect(await checked({ Order })).toMatchObject([{ check: 'classes', level: 'ok' }]);
  });

  it('fail where the database holds none of their collections', async () => {
    expect(await checked({ Order, Customer: {} })).toMatchObject([
      {
        check: 'classes.collection',
        level: 'fail',
        remedy: expect.stringContaining('database.name') as string,
      },
    ]);
  });

  it.each<[string, () => Promise<unknown>, Classes, string, string]>([
    [
      'fail without one of their collections',
      () => fill('orders', { number: 1 }),
      { Order, Customer: { collection: 'clients' } },
      'fail classes.collection',
      "Customer: there is no collection 'clients'",
    ],
    [
      'fail as views over collections without a class',
      async () => {
        await fill('orders', { number: 1 });
        await fill('secrets', { a: 1 });
        await db.createCollection('joined', { viewOn: 'secrets', pipeline: [] });
      },
      { Order, Joined: { collection: 'joined' } },
      'fail classes.view',
      "'secrets'",
    ],
    [
      'fail with ids of several kinds',
      () => fill('orders', { _id: 'x' as never }, { _id: 1 as never }),
      { Order },
      'fail classes.id',
      'Order: ',
    ],
    [
      'are warned of when a validator contradicts their properties',
      () =>
        db.createCollection('orders', {
          validator: { $jsonSchema: { properties: { total: { bsonType: 'string' } } } },
        }),
      { Order: { ...Order, properties: { total: { type: 'Number' } } } },
      'warn classes.validator',
      "'total'",
    ],
    [
      'are warned of when a reference has no class',
      () => fill('orders', { customer: new ObjectId() }),
      { Order: { ...Order, properties: { customer: { type: 'Pointer', targetClass: 'Customer' } } } },
      'warn classes.reference',
      'which is no class here',
    ],
    [
      'are warned of when references lead nowhere',
      async () => {
        const id = new ObjectId();
        await fill('customers', { _id: id });
        await fill(
          'orders',
          { c_id: id, all: [id, new ObjectId()] },
          { c_id: new ObjectId() },
          { c_id: null },
        );
      },
      {
        Customer: { collection: 'customers' },
        Order: {
          ...Order,
          properties: { customer: { type: 'Pointer', targetClass: 'Customer', field: 'c_id' } },
        },
      },
      'warn classes.reference',
      'Order.customer: 1 of 2 values in a sample are the id of no Customer',
    ],
    [
      'are warned of when entries of a list lead nowhere',
      async () => {
        await fill('customers', { name: 'a' });
        await fill('orders', { all: [new ObjectId(), new ObjectId()] });
      },
      {
        Customer: { collection: 'customers' },
        Order: { ...Order, properties: { all: { type: 'Array', targetClass: 'Customer' } } },
      },
      'warn classes.reference',
      'Order.all: 2 of 2 values',
    ],
  ])('%s', async (_title, given, classes, finding, found) => {
    await given();
    const findings = await checked(classes);
    expect(findings.map(({ check, level }) => `${level} ${check}`)).toEqual([finding]);
    expect(findings[0]?.found).toContain(found);
    expect(findings[0]?.remedy).toMatch(/^[a-z]/);
  });

  it('are not looked at where there are none', async () => {
    expect(await checkClasses(policyOf('parse', { Order: {} }), null)).toEqual([]);
  });
});
