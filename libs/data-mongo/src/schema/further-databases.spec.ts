import { EmbeddedMongo } from '@parley/embedded-mongo';
import { ObjectId } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { PATIENT } from '#data/contracts';
import type { PlainColumn } from '#policy';
import { MongoConnection } from '../connection/mongo-connection.js';
import { MongoRecordReader } from '../read/mongo-record-reader.js';
import { MongoRecordWriter } from '../write/mongo-record-writer.js';
import { MongoSchemaCatalogue } from './mongo-schema-catalogue.js';
import type { PlainClassDeclaration, StorageDeclarations } from './storage-declarations.js';

const declared = (
  className: string,
  collection: string,
  more: Partial<PlainClassDeclaration> = {},
): PlainClassDeclaration => ({
  className,
  collection,
  id: null,
  timestamps: null,
  properties: new Map(),
  ...more,
});

const toCustomer: PlainColumn = { type: 'Pointer', targetClass: 'Customer' };
const BILL = declared('Bill', 'bills', {
  properties: new Map<string, PlainColumn>([
    ['customer', toCustomer],
    ['lines', { type: 'Array', of: new Map([['customer', toCustomer]]) }],
  ]),
});
const CUSTOMER = declared('Customer', 'customers', {
  database: 'crm',
  properties: new Map([['name', { type: 'String' as const }]]),
});
const NOWHERE = 'mongodb://127.0.0.1:1';
const SOON = { timeout: 15_000, interval: 100 };
const operation = () => ({ maxTimeMS: 5_000, comment: 'test', signal: AbortSignal.timeout(20_000) });

describe('classes beside those of the first database', PATIENT, () => {
  let main: EmbeddedMongo;
  let beside: EmbeddedMongo;
  let connection: MongoConnection;
  beforeAll(async () => {
    [main, beside] = await Promise.all([EmbeddedMongo.start(), EmbeddedMongo.start()]);
  });
  afterAll(() => Promise.all([main.close(), beside.close()]));
  let database: string;
  beforeEach(() => (database = `test_${new ObjectId().toHexString()}`));
  afterEach(() => Promise.all([connection, ...connection.further.values()].map((one) => one.close())));

  function open(declarations: Partial<StorageDeclarations>, uri = beside.uri, readOnly = false) {
    const crm = new MongoConnection({ uri, database, readOnly });
    connection = new MongoConnection({ uri: main.uri, database }, new Map([['crm', crm]]));
    const catalogue = new MongoSchemaCatalogue(connection, {
      declared: () => ({
        parse: new Set<string>(),
        plain: [],
        further: new Map([['crm', { parse: new Set<string>() }]]),
        ...declarations,
      }),
    });
    return { catalogue, crm };
  }

  const readCustomer = (catalogue: MongoSchemaCatalogue) =>
    vi.waitFor(async () => expect((await catalogue.snapshot()).get('Customer')).toBeDefined(), SOON);

  it('are still what columns refer to while their database is away, and filters miss no form of an id', async () => {
    const { catalogue } = open({ plain: [BILL, CUSTOMER] }, NOWHERE);
    const [ada, bob] = [new ObjectId(), new ObjectId()];
    await connection.db
      .collection('bills')
      .insertMany([
        { customer: ada, lines: [{ customer: ada }] },
        { customer: ada.toHexString() },
        { customer: bob, lines: [] },
      ]);
    const classes = await catalogue.snapshot();
    expect(classes.isAway?.('Customer')).toBe(true);
    const { fields } = classes.get('Bill')!;
    expect(fields.get('customer')).toMatchObject(toCustomer);
    expect(fields.get('lines')?.members?.get('customer')).toMatchObject(toCustomer);
    const reader = new MongoRecordReader(connection, catalogue);
    await expect(reader.count({ className: 'Customer', where: {} }, operation())).rejects.toMatchObject({
      code: 'unavailable',
    });
    const pointer = { __type: 'Pointer', className: 'Customer', objectId: ada.toHexString() };
    const find = async (condition: unknown) =>
      (await reader.find({ className: 'Bill', where: { customer: condition }, limit: 9 }, operation())).map(
        ({ customer }) => (customer as { objectId: string }).objectId,
      );
    expect(await find({ $ne: pointer })).toEqual([bob.toHexString()]);
    expect(await find(pointer)).toEqual([ada.toHexString(), ada.toHexString()]);
    expect((await catalogue.problems()).map(({ kind }) => kind)).toEqual(['database_away']);
  });

  it('never read a collection that Parse stores as a plain one', async () => {
    const people = declared('People', 'Person', { database: 'crm' });
    const { catalogue, crm } = open({
      plain: [people, CUSTOMER],
      further: new Map([['crm', { parse: new Set<string>(), guarded: new Set(['Person', 'customers']) }]]),
    });
    await crm.collection('_SCHEMA').insertOne({ _id: 'Person', objectId: 'string' });
    await crm.collection('Person').insertOne({ _id: 'p1', _rperm: [] });
    await crm.collection('customers').insertOne({ _id: 'c1' });
    await readCustomer(catalogue);
    expect((await catalogue.snapshot()).classNames()).toEqual(['Customer']);
    expect(await catalogue.problems()).toMatchObject([
      { className: 'People', text: expect.stringContaining('its ACLs protect') as unknown },
    ]);
  });

  it('are not written where their database is only read, whoever writes', async () => {
    const { catalogue, crm } = open({ plain: [CUSTOMER] }, beside.uri, true);
    await crm.db.collection('customers').insertOne({ name: 'Ada' });
    await readCustomer(catalogue);
    const writer = new MongoRecordWriter(connection, catalogue);
    const row = { className: 'Customer', objectId: new ObjectId().toHexString(), where: {} };
    for (const write of [
      { kind: 'create', className: 'Customer', fields: { name: 'x' } },
      { kind: 'update', ...row, fields: { name: 'x' } },
      { kind: 'delete', ...row },
    ] as const)
      await expect(writer.run(write, operation(), 'operator')).rejects.toMatchObject({ code: 'unsupported' });
    expect(await crm.db.collection('customers').countDocuments()).toBe(1);
  });

  it('are read again only when they can be: a database that refuses costs the others nothing', async () => {
    const { catalogue, crm } = open({ plain: [CUSTOMER] });
    await crm.db.collection('customers').insertOne({ name: 'Ada' });
    const refuse = (mode: unknown) =>
      crm.db.admin().command({
        configureFailPoint: 'failCommand',
        mode,
        data: { failCommands: ['listCollections'], errorCode: 13 },
      });
    await refuse('alwaysOn');
    const classes = await catalogue.snapshot();
    expect(classes.isAway?.('Customer')).toBe(true);
    await new Promise((done) => setTimeout(done, 2_500));
    expect(catalogue.snapshotNow()).toBe(classes);
    await refuse('off');
    await readCustomer(catalogue);
  });
});
