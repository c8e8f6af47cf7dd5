import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import fc from 'fast-check';
import {
  Binary,
  Decimal128,
  Double,
  Int32,
  Long,
  MongoClient,
  type MongoClientOptions,
  ObjectId,
  UUID,
} from 'mongodb';
import mongoose from 'mongoose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENT, storeErrorCode, unhurried } from '#data/contracts';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { MongoRecordReader } from '../read/mongo-record-reader.js';
import { MongoSchemaCatalogue } from '../schema/mongo-schema-catalogue.js';
import type { StorageDeclarations } from '../schema/storage-declarations.js';
import { MongoRecordWriter } from '../write/mongo-record-writer.js';
import { ApplicationConnectionError, useApplicationConnection } from './application-connection.js';
import { MongoConnection } from './mongo-connection.js';

let server: EmbeddedMongo;
let own: MongoConnection;
beforeAll(async () => {
  server = await EmbeddedMongo.start({ inProcess: true });
  own = new MongoConnection({ uri: server.uri, database: 'shop', timeout: 30_000 });
  await own.collection('_SCHEMA').insertOne({
    _id: 'Album',
    title: 'string',
    plays: 'number',
    blob: 'bytes',
    more: 'object',
    tags: 'array',
  });
});
afterAll(async () => {
  await own.close();
  await server.close();
});

/** What an application may have set, among it what would change values. */
const clientOptions: fc.Arbitrary<MongoClientOptions> = fc
  .record<MongoClientOptions, never>(
    {
      raw: fc.boolean(),
      promoteBuffers: fc.boolean(),
      bsonRegExp: fc.boolean(),
      ignoreUndefined: fc.boolean(),
      serializeFunctions: fc.boolean(),
      enableUtf8Validation: fc.boolean(),
      fieldsAsRaw: fc.constant({ title: true, value: true }),
      readPreference: fc.constantFrom('secondaryPreferred', 'nearest', 'primary'),
      readConcernLevel: fc.constantFrom('majority', 'available', 'local'),
      retryReads: fc.boolean(),
      retryWrites: fc.boolean(),
      w: fc.constantFrom(0, 1, 'majority' as const),
    },
    { requiredKeys: [] },
  )
  .chain((options) =>
    fc
      .oneof(
        fc.record({ promoteLongs: fc.boolean(), promoteValues: fc.boolean() }, { requiredKeys: [] }),
        fc.constant({ useBigInt64: true }),
      )
      .map((numbers) => ({ ...options, ...numbers })),
  );

const rows = fc.record(
  {
    title: fc.string(),
    plays: fc.oneof(fc.integer(), fc.double({ noNaN: true }), fc.maxSafeInteger()),
    blob: fc.base64String().map((base64) => ({ __type: 'Bytes', base64 })),
    more: fc.record({ deep: fc.oneof(fc.integer(), fc.string(), fc.constant(null)) }),
    tags: fc.array(fc.oneof(fc.string(), fc.integer(), fc.constant(null)), { maxLength: 3 }),
  },
  { requiredKeys: [] },
);

/** A collection that Parse did not write, whose documents have what JSON has not. */
const THINGS: StorageDeclarations = {
  parse: 'all',
  plain: [
    {
      className: 'Thing',
      collection: 'things',
      id: 'objectId',
      timestamps: null,
      properties: new Map([
        ['title', { type: 'String' }],
        ['owner', { type: 'Pointer', targetClass: 'Thing' }],
      ]),
    },
  ],
};

const numbers = [new Int32(7), new Double(1), Long.MAX_VALUE, Long.fromNumber(5), new Decimal128('0.10')];
const stored = fc.oneof(
  fc.constantFrom(...numbers, new ObjectId('6b03a63d7e511159ec3f9416')),
  fc.constant(new UUID('8a1e9a4c-4c2b-4f6e-9d61-0c1b3a2f7e55')),
  fc.uint8Array({ maxLength: 5 }).map((bytes) => new Binary(bytes)),
  fc.date({ noInvalidDate: true }),
  fc.string(),
);
const documents = fc.record({
  title: fc.string(),
  value: stored,
  list: fc.array(stored, { maxLength: 3 }),
  inside: fc.record({ value: stored }),
});

/** A second copy of the driver and of its BSON, as an application may have one. */
function anotherCopy(): typeof MongoClient {
  const load = createRequire(import.meta.url);
  const kept = { ...load.cache };
  for (const file of Object.keys(load.cache))
    if (/node_modules\/(mongodb|bson)\//.test(file)) delete load.cache[file];
  const copy = load('mongodb') as { MongoClient: typeof MongoClient; ObjectId: unknown };
  Object.assign(load.cache, kept);
  expect(copy.ObjectId).not.toBe(ObjectId);
  return copy.MongoClient;
}

function storesOf(connection: MongoConnection) {
  const catalogue = new MongoSchemaCatalogue(connection, { declared: () => THINGS });
  return {
    reader: new MongoRecordReader(connection, catalogue),
    writer: new MongoRecordWriter(connection, catalogue),
  };
}

describe('the connection of an application', PATIENT, () => {
  it.each([
    ['what the application set at its client', () => MongoClient, 25],
    ['the classes of another copy of the driver', anotherCopy, 10],
  ])('never changes a value by %s', async (_title, driver, numRuns) => {
    const Client = driver();
    await fc.assert(
      fc.asyncProperty(clientOptions, rows, documents, async (options, row, document) => {
        const client = new Client(server.uri, options);
        const connection = await useApplicationConnection(client, { database: 'shop' });
        const expected = storesOf(own);
        const { reader, writer } = storesOf(connection);
        const _id = new ObjectId();
        try {
          await own.db.collection('things').insertOne({ _id, owner: _id, ...document });
          const created = await writer.create('Album', row, unhurried());
          const id = String(created['objectId']);
          // A number that no double holds, as another program may store it.
          await own.collection('Album').updateOne({ _id: id }, { $set: { big: Long.MAX_VALUE } });
          for (const [className, objectId] of [
            ['Album', id],
            ['Thing', _id.toHexString()],
          ] as const) {
            const query = { className, where: { objectId }, limit: 1 };
            expect(await reader.find(query, unhurried())).toEqual(
              await expected.reader.find(query, unhurried()),
            );
            const updated = await writer.update(className, objectId, { title: 'now' }, {}, unhurried());
            expect([updated]).toEqual(await expected.reader.find(query, unhurried()));
          }
        } finally {
          await own.db.collection('things').deleteOne({ _id });
          await connection.close();
          await client.close();
        }
      }),
      { numRuns },
    );
  });

  it('reports a refused write although the application asked for no acknowledgement', async () => {
    const client = new MongoClient(server.uri, { w: 0 });
    const connection = await useApplicationConnection(client, { database: 'shop' });
    const { writer } = storesOf(connection);
    await writer.create('Album', {}, unhurried(), 'once');
    expect(await storeErrorCode(writer.create('Album', {}, unhurried(), 'once'))).toBe('duplicate');
    await connection.close();
    await client.close();
  });

  it('is left open and without listeners when Parley ends', async () => {
    const client = new MongoClient(server.uri);
    const listeners = client.listenerCount('topologyClosed');
    const connection = await useApplicationConnection(client);
    await connection.ping(5_000);
    await connection.close();
    expect(await storeErrorCode(connection.ping(100))).toBe('unavailable');
    expect(client.listenerCount('topologyClosed')).toBe(listeners);
    expect(await client.db().command({ ping: 1 })).toMatchObject({ ok: 1 });
    await client.close();
  });

  it('is not opened again when the application closed it', async () => {
    const client = new MongoClient(server.uri);
    const connection = await useApplicationConnection(client);
    await connection.ping(5_000);
    let opened = 0;
    client.on('topologyOpening', () => (opened += 1));
    await client.close();
    expect(await storeErrorCode(connection.ping(1_000))).toBe('unavailable');
    expect(opened).toBe(0);
    await client.connect();
    await connection.ping(5_000);
    await connection.close();
    await client.close();
  });

  it('names the database of the URI, of the client or of the connection unless another is given', async () => {
    const named = new URL(server.uri);
    named.pathname = '/orders';
    const client = new MongoClient(named.href);
    expect((await useApplicationConnection(client)).name).toBe('orders');
    expect((await useApplicationConnection(client, { database: 'audit' })).name).toBe('audit');
    const connection = await mongoose.createConnection(named.href, { dbName: 'stock' }).asPromise();
    expect((await useApplicationConnection(connection)).name).toBe('stock');
    expect((await useApplicationConnection(connection.useDb('returns'))).name).toBe('returns');
    await client.close();
    await connection.close();
  });

  it('of Mongoose is waited for while it is connecting', async () => {
    const connection = mongoose.createConnection(server.uri, { dbName: 'shop' });
    expect(connection.readyState).toBe(mongoose.ConnectionStates.connecting);
    const used = await useApplicationConnection(connection);
    const { reader, writer } = storesOf(used);
    const { objectId } = await writer.create('Album', { title: 'Blue' }, unhurried());
    const found = await reader.find({ className: 'Album', where: { objectId }, limit: 1 }, unhurried());
    expect(found).toMatchObject([{ title: 'Blue' }]);
    await used.close();
    expect(connection.readyState).toBe(mongoose.ConnectionStates.connected);
    await connection.close();
  });

  it('of Mongoose may be closed and opened again', async () => {
    const connection = await mongoose.createConnection(server.uri).asPromise();
    const used = await useApplicationConnection(connection);
    await connection.close();
    expect(await storeErrorCode(used.ping(1_000))).toBe('unavailable');
    await connection.openUri(server.uri);
    await used.ping(5_000);
    await used.close();
    await connection.close();
  });

  it('is followed by the connections of tenants and sessions, and listened to once', async () => {
    const connection = await mongoose.createConnection(server.uri).asPromise();
    const used = await useApplicationConnection(connection);
    const views = ['acme', 'globex'].map((tenant) => used.withTenant(tenant));
    const closed = connection.getClient();
    await connection.close();
    for (const one of [used, ...views]) expect(await storeErrorCode(one.ping(1_000))).toBe('unavailable');
    await connection.openUri(server.uri);
    for (const one of [...views, used, used.withTenant('initech')]) await one.ping(5_000);
    expect(connection.getClient()).not.toBe(closed);
    expect(connection.getClient().listenerCount('topologyClosed')).toBe(1);
    await used.close();
    expect(connection.getClient().listenerCount('topologyClosed')).toBe(0);
    await connection.close();
  });

  it('has errors that are recognised although its driver is another copy', async () => {
    const connection = await mongoose.createConnection(server.uri, { dbName: 'shop' }).asPromise();
    expect(connection.getClient()).not.toBeInstanceOf(MongoClient);
    const { writer, reader } = storesOf(await useApplicationConnection(connection));
    await writer.create('Album', {}, unhurried(), 'twice');
    expect(await storeErrorCode(writer.create('Album', {}, unhurried(), 'twice'))).toBe('duplicate');
    const bad = { className: 'Album', where: { title: { $regex: '(' } } };
    expect(await storeErrorCode(reader.count(bad, unhurried()))).toBe('invalid_query');
    await connection.close();
  });
});

describe('a connection that cannot be used', PATIENT, () => {
  it('is one that never connects, and the message has no password', async () => {
    const silent = createServer((socket) => socket.on('error', () => socket.destroy()));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const uri = `mongodb://user:hunter2@127.0.0.1:${(silent.address() as AddressInfo).port}/`;
    const connection = mongoose.createConnection(uri, { serverSelectionTimeoutMS: 500 });
    const waiting = useApplicationConnection(connection, { connectingTimeout: 50 });
    await expect(waiting).rejects.toThrow(/still connecting after 0.05 seconds/);
    const failed = useApplicationConnection(connection);
    await expect(failed).rejects.toThrow(/could not connect/);
    await expect(failed).rejects.not.toThrow(/hunter2/);
    await connection.close();
    silent.close();
  });

  it('is one that was never opened', async () => {
    const never = useApplicationConnection(mongoose.createConnection());
    await expect(never).rejects.toThrow(/not connected: open it before Parley starts/);
  });

  it('is one of a driver with another BSON, and the message says what to do', async () => {
    const session = {
      id: { id: { [Symbol.for('@@mdb.bson.version')]: 6 } },
      endSession: async () => undefined,
    };
    const client = { db: () => ({}), connect: () => ({}), startSession: () => session, options: {} };
    const refused = useApplicationConnection(client);
    await expect(refused).rejects.toBeInstanceOf(ApplicationConnectionError);
    await expect(refused).rejects.toThrow(/BSON 6.*Mongoose 9, or set database\.uri/);
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a URI', 'mongodb://127.0.0.1'],
    ['an object', {}],
    ['Mongoose itself', mongoose],
    ['a promise of one', Promise.resolve()],
  ])('is no connection: %s', async (_title, given) => {
    const refused = useApplicationConnection(given);
    await expect(refused).rejects.toThrow(/expected a MongoClient or a Mongoose connection/);
  });
});

describe('a database of an application that is only read', () => {
  it('is not written by code either', async () => {
    const client = new MongoClient(server.uri);
    try {
      const connection = await useApplicationConnection(client, { database: 'shop', readOnly: true });
      expect(() => connection.openForChanges({})).toThrow(expect.objectContaining({ code: 'unsupported' }));
      expect(connection.holding({})).toBe(connection);
    } finally {
      await client.close();
    }
  });
});
