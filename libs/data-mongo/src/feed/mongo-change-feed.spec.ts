import { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RowChange } from '#data';
import { MUSIC_SEED, PATIENT, unhurried } from '#data/contracts';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { MongoConnection } from '../connection/mongo-connection.js';
import { MongoSchemaCatalogue } from '../schema/mongo-schema-catalogue.js';
import { loadSeed } from '../seed/load-seed.js';
import { parseSeed } from '../seed/parse-seed.js';
import { TestDatabase } from '../test-database.contract.js';
import { MongoRecordWriter } from '../write/mongo-record-writer.js';
import { MongoChangeFeed } from './mongo-change-feed.js';

const SOON = { timeout: 30_000, interval: 50 };

describe('the change feed of MongoDB', PATIENT, () => {
  let database: TestDatabase;
  let store: Awaited<ReturnType<TestDatabase['open']>>;
  let admin: MongoClient;
  beforeAll(async () => {
    database = await TestDatabase.start();
    admin = new MongoClient(database.uri);
  });
  afterAll(async () => {
    await admin.close();
    await database.stop();
  });
  beforeEach(async () => {
    store = await database.open(MUSIC_SEED);
  });
  afterEach(() => store.close());

  /** Cursors that a client opened and has not closed, counted from its command events. */
  const openCursors = (client: MongoClient): ReadonlySet<string> => {
    const open = new Set<string>();
    client.on('commandSucceeded', ({ commandName, reply }) => {
      const { cursor } = reply as { cursor?: { id: unknown } };
      if (commandName === 'aggregate' && cursor) open.add(String(cursor.id));
    });
    client.on('commandStarted', ({ commandName, command }) => {
      if (commandName !== 'killCursors') return;
      for (const id of command.cursors as unknown[]) open.delete(String(id));
    });
    return open;
  };

  it('holds one stream however many classes are watched, and none when nobody watches', async () => {
    const monitored = await database.openMonitored(MUSIC_SEED);
    const open = openCursors(monitored.connection.db.client);
    const watching = ['Album', 'Artist', 'Label', 'Album'].map((className) =>
      monitored.feed.changes(className).subscribe(),
    );
    await vi.waitFor(() => expect(open.size).toBe(1), SOON);
    const [stream] = open;
    await monitored.writer.create('Label', { name: 'x' }, unhurried());
    expect([...open]).toEqual([stream]);
    for (const subscription of watching) subscription.unsubscribe();
    await vi.waitFor(() => expect(open.size).toBe(0), SOON);
    await monitored.close();
  });

  it('reports a change to every class of its collection, and none of a view', async () => {
    const declared = (className: string, collection: string) => ({
      className,
      collection,
      id: 'objectId' as const,
      timestamps: null,
      properties: new Map([['title', { type: 'String' as const, field: 'title_column' }]]),
    });
    const plain = database.openDeclared({
      parse: new Set(),
      plain: [declared('Order', 'orders'), declared('Offer', 'orders'), declared('Open', 'open_orders')],
    });
    const { db } = plain.connection;
    await db.createCollection('orders');
    await db.createCollection('open_orders', { viewOn: 'orders', pipeline: [] });
    const refused: unknown[] = [];
    plain.feed.changes('Open').subscribe({ error: (error: unknown) => refused.push(error) });
    await expect(plain.feed.waitForListening()).rejects.toMatchObject({ code: 'unsupported' });
    expect(refused).toMatchObject([{ code: 'unsupported' }]);
    const seen: RowChange[] = [];
    const watching = ['Order', 'Offer', 'Absent', 'orders'].map((className) =>
      plain.feed.changes(className).subscribe((change) => seen.push(change)),
    );
    await plain.feed.waitForListening();
    const { objectId } = await plain.writer.create('Order', { title: 'x' }, unhurried());
    await vi.waitFor(() => expect(seen).toHaveLength(2), SOON);
    const change = { kind: 'create', objectId, row: { objectId, title: 'x' } };
    expect(seen).toEqual([
      { className: 'Order', ...change },
      { className: 'Offer', ...change },
    ]);
    for (const subscription of watching) subscription.unsubscribe();
    await plain.close();
  });

  it.skipIf(process.env['MONGODB_URI'])('loses nothing when its connection breaks', async () => {
    const seen: RowChange[] = [];
    const subscription = store.feed.changes('Label').subscribe((change) => seen.push(change));
    await vi.waitFor(async () => {
      await store.writer.create('Label', { name: 'warm-up' }, unhurried());
      expect(seen.length).toBeGreaterThan(0);
    }, SOON);
    await admin.db('admin').command({
      configureFailPoint: 'failCommand',
      mode: { times: 3 },
      data: { failCommands: ['getMore', 'aggregate'], closeConnection: true },
    });
    const made: unknown[] = [];
    for (let index = 0; index < 5; index += 1)
      made.push((await store.writer.create('Label', { name: `n${index}` }, unhurried()))['objectId']);
    await vi.waitFor(() => {
      const received = seen.map((change) => change.objectId).filter((objectId) => made.includes(objectId));
      expect(received).toEqual(made);
    }, SOON);
    subscription.unsubscribe();
  });

  it('reports a lost place in the stream once to every subscriber, and listens again for the next one', async () => {
    const own = await EmbeddedMongo.start({ inProcess: true });
    const connection = new MongoConnection({ uri: own.uri, database: 'x' });
    await loadSeed(connection, parseSeed(MUSIC_SEED));
    const catalogue = new MongoSchemaCatalogue(connection);
    const feed = new MongoChangeFeed(connection, catalogue, { maxAttempts: 5, firstDelay: 10 });
    const failCommand = (mode: unknown, data: object) =>
      connection.db.client.db('admin').command({ configureFailPoint: 'failCommand', mode, data });
    const errors: unknown[] = [];
    for (const className of ['Album', 'Label'])
      feed
        .changes(className)
        .subscribe({ error: ({ code }: { code?: unknown }) => errors.push([className, code]) });
    await feed.waitForListening();
    await failCommand({ times: 1 }, { failCommands: ['getMore'], errorCode: 286 });
    await vi.waitFor(() => expect(errors).toHaveLength(2), SOON);
    const seen: unknown[] = [];
    const subscription = feed.changes('Label').subscribe(({ objectId }) => seen.push(objectId));
    await feed.waitForListening();
    const writer = new MongoRecordWriter(connection, catalogue);
    const { objectId } = await writer.create('Label', { name: 'afterwards' }, unhurried());
    await vi.waitFor(() => expect(seen).toEqual([objectId]), SOON);
    expect(errors).toEqual([
      ['Album', 'failed'],
      ['Label', 'failed'],
    ]);
    subscription.unsubscribe();
    await connection.close();
    await own.close();
  });

  it('is available exactly where the server has change streams', async () => {
    expect(store.feed.available).toBeNull();
    await store.feed.probe();
    expect(store.feed.available).toBe(true);
    const alone = await EmbeddedMongo.start({ replSet: false });
    const connection = new MongoConnection({ uri: alone.uri, database: 'x' });
    const feed = new MongoChangeFeed(connection, new MongoSchemaCatalogue(connection));
    await feed.probe();
    expect(feed.available).toBe(false);
    await connection.close();
    await alone.close();
  });

  it('rejects those who wait for it to listen when the source is lost', async () => {
    const alone = await EmbeddedMongo.start({ replSet: false });
    const connection = new MongoConnection({ uri: alone.uri, database: 'x' });
    const feed = new MongoChangeFeed(connection, new MongoSchemaCatalogue(connection));
    feed.changes('Album').subscribe({ error: () => undefined });
    await expect(feed.waitForListening()).rejects.toMatchObject({ name: 'StoreError', code: 'unsupported' });
    await connection.close();
    await alone.close();
  });

  it('says that a server without change streams is not supported', async () => {
    const alone = await EmbeddedMongo.start({ replSet: false });
    const connection = new MongoConnection({ uri: alone.uri, database: 'x' });
    const feed = new MongoChangeFeed(connection, new MongoSchemaCatalogue(connection));
    const fault = await new Promise((resolve) => feed.changes('Album').subscribe({ error: resolve }));
    expect(fault).toMatchObject({ name: 'StoreError', code: 'unsupported' });
    await connection.close();
    await alone.close();
  });

  it('reports to every subscriber that the database is gone for good', async () => {
    const own = await EmbeddedMongo.start();
    const connection = new MongoConnection({ uri: own.uri, database: 'x', timeout: 200 });
    const catalogue = new MongoSchemaCatalogue(connection);
    const feed = new MongoChangeFeed(connection, catalogue, { maxAttempts: 2, firstDelay: 10 });
    const faults: unknown[] = [];
    for (const className of ['Album', 'Label'])
      feed.changes(className).subscribe({ error: (fault: { code?: unknown }) => faults.push(fault.code) });
    await catalogue.snapshot();
    await own.close();
    await vi.waitFor(() => expect(faults).toEqual(['unavailable', 'unavailable']), SOON);
    await connection.close();
  });

  it('ends with its connection and does not bring it back', async () => {
    const own = await database.open(MUSIC_SEED);
    const fault = new Promise((resolve) => own.feed.changes('Album').subscribe({ error: resolve }));
    await own.close();
    expect(await fault).toMatchObject({ name: 'StoreError', code: 'unavailable' });
  });
});
