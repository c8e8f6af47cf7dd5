import { MongoClient, type Collection, type Document, type MongoError } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '../embedded-mongo.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let server: EmbeddedMongo;
let client: MongoClient;
let once: MongoClient;
let rows: Collection<{ _id: number; n: number }>;
beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = await MongoClient.connect(server.uri);
  // A client that sends nothing a second time.
  once = await MongoClient.connect(server.uri, { retryWrites: false, retryReads: false, appName: 'once' });
  rows = client.db('d').collection('rows');
});
afterAll(async () => {
  await client.close();
  await once.close();
  await server.close();
});

const set = (name: string, mode: unknown, data?: Document) =>
  client.db('admin').command({ configureFailPoint: name, mode, data });
const failCommand = (mode: unknown, data: Document) => set('failCommand', mode, data);

beforeEach(async () => {
  await rows.deleteMany({});
  await rows.insertOne({ _id: 1, n: 0 });
});
afterEach(async () => {
  await set('failCommand', 'off');
  await set('onPrimaryTransactionalWrite', 'off');
});

const increment = (by: MongoClient) =>
  by
    .db('d')
    .collection<{ _id: number }>('rows')
    .updateOne({ _id: 1 }, { $inc: { n: 1 } });
const n = async () => (await rows.findOne({ _id: 1 }))?.n;

describe('failCommand', () => {
  it('labels its errors as MongoDB does, so that the driver sends a write once more', async () => {
    await failCommand({ times: 1 }, { failCommands: ['update'], errorCode: 91 });
    await increment(client);
    await failCommand({ times: 1 }, { failCommands: ['update'], closeConnection: true });
    await increment(client);
    expect(await n()).toBe(2);
    await failCommand({ times: 1 }, { failCommands: ['update'], errorCode: 91, errorLabels: [] });
    await expect(increment(client)).rejects.toMatchObject({ code: 91 });
    await failCommand({ times: 1 }, { failCommands: ['update'], errorCode: 8000 });
    await expect(increment(client)).rejects.toMatchObject({ code: 8000 });
    expect(await n()).toBe(2);
  });

  it('tells a cursor of one collection from others, and a change stream of a database from all', async () => {
    await rows.insertMany([2, 3].map((_id) => ({ _id, n: 0 })));
    const read = () => rows.find({}, { batchSize: 2 }).toArray();
    const failGetMore = (namespace: string) =>
      failCommand({ times: 1 }, { failCommands: ['getMore'], namespace, errorCode: 43 });
    await failGetMore('d.$cmd.aggregate');
    expect(await read()).toHaveLength(3);
    await failGetMore('d.rows');
    await expect(read()).rejects.toMatchObject({ code: 43 });
  });

  it('answers a write that was done with a write concern error', async () => {
    const writeConcernError = {
      code: 64,
      codeName: 'WriteConcernFailed',
      errmsg: 'waiting for replication timed out',
    };
    await failCommand({ times: 1 }, { failCommands: ['update'], writeConcernError });
    await expect(increment(client)).rejects.toMatchObject({ code: 64, result: expect.anything() });
    expect(await n()).toBe(1);
    // One that may pass is sent again by the driver, and answered by what was done.
    const shutdown = { code: 91, errmsg: 'Replication is being shut down' };
    await failCommand({ times: 1 }, { failCommands: ['update'], writeConcernError: shutdown });
    await increment(client);
    expect(await n()).toBe(2);
  });

  it('concerns the clients, the collections and as many commands as it says', async () => {
    await failCommand('alwaysOn', { failCommands: ['update'], errorCode: 8000, appName: 'once' });
    await increment(client);
    await expect(increment(once)).rejects.toMatchObject({ code: 8000 });
    await failCommand('alwaysOn', { failCommands: ['update'], errorCode: 8000, namespace: 'd.other' });
    await increment(once);
    await failCommand({ activationProbability: 0 }, { failCommands: ['update'], errorCode: 8000 });
    await increment(once);
    await failCommand({ activationProbability: 1 }, { failCommands: ['update'], errorCode: 8000 });
    await expect(increment(once)).rejects.toMatchObject({ code: 8000 });
    await failCommand({ skip: 1 }, { failCommands: ['update'], errorCode: 8000 });
    await increment(once);
    await expect(increment(once)).rejects.toMatchObject({ code: 8000 });
  });

  it('makes a node slow', async () => {
    await failCommand({ times: 1 }, { failCommands: ['find'], blockConnection: true, blockTimeMS: 200 });
    const begun = Date.now();
    await rows.findOne();
    expect(Date.now() - begun).toBeGreaterThanOrEqual(195);
  });

  it('ends a cursor, and a change stream whose place is lost', async () => {
    await rows.insertMany(Array.from({ length: 10 }, (_, place) => ({ _id: place + 2, n: place })));
    await failCommand({ times: 1 }, { failCommands: ['getMore'], errorCode: 43 });
    await expect(rows.find({}, { batchSize: 2 }).toArray()).rejects.toMatchObject({
      code: 43,
      codeName: 'CursorNotFound',
    });
    const stream = rows.watch([], { maxAwaitTimeMS: 50 });
    try {
      await stream.tryNext();
      await failCommand('alwaysOn', { failCommands: ['getMore'], errorCode: 286 });
      await expect(stream.next()).rejects.toMatchObject({ code: 286, codeName: 'ChangeStreamHistoryLost' });
    } finally {
      await stream.close();
    }
  });

  it('lets a change stream go on after what a driver resumes', async () => {
    const stream = rows.watch([], { maxAwaitTimeMS: 50 });
    try {
      await stream.tryNext();
      const resumable = { errorCode: 91, errorLabels: ['ResumableChangeStreamError'] };
      for (const failure of [resumable, { errorCode: 43 }, { closeConnection: true }, undefined]) {
        if (failure) await failCommand({ times: 1 }, { failCommands: ['getMore'], ...failure });
        else await set('failGetMoreAfterCursorCheckout', { times: 1 }, { errorCode: 234 });
        await increment(client);
        expect(await stream.next()).toMatchObject({ operationType: 'update' });
      }
    } finally {
      await stream.close();
    }
  });
});

describe('a change stream', () => {
  it('ends with an error that failCommand gives no label, as the command never knew that it watches', async () => {
    const stream = rows.watch([], { maxAwaitTimeMS: 50 });
    await stream.tryNext();
    await failCommand({ times: 1 }, { failCommands: ['getMore'], errorCode: 91 });
    await expect(stream.next()).rejects.toMatchObject({ code: 91 });
  });
});

describe('an error in a transaction', () => {
  it.each([
    ['insert', 251, true],
    ['commitTransaction', 251, true],
    ['commitTransaction', 24, true],
    ['commitTransaction', 246, true],
    ['commitTransaction', 50, false],
  ])(
    'of %s with the code %i lets the whole transaction be run again: %s',
    async (command, errorCode, again) => {
      const session = client.startSession();
      session.startTransaction();
      await failCommand({ times: 1 }, { failCommands: [command], errorCode });
      const failure: unknown = await rows
        .insertOne({ _id: 9, n: 1 }, { session })
        .then(() => session.commitTransaction())
        .catch((error: unknown) => error);
      expect((failure as MongoError).hasErrorLabel('TransientTransactionError')).toBe(again);
      await session.endSession();
    },
  );
});

describe('onPrimaryTransactionalWrite', () => {
  it('cuts the connection after a write that was done, which the driver does not do twice', async () => {
    await set('onPrimaryTransactionalWrite', { times: 1 }, { closeConnection: true });
    await increment(client);
    expect(await n()).toBe(1);
  });

  it('does not count a write that is answered from memory', async () => {
    await set('onPrimaryTransactionalWrite', { times: 2 }, { closeConnection: true });
    await increment(client);
    await increment(client);
    expect(await n()).toBe(2);
  });

  it('fails a write before it is done, which the driver then does', async () => {
    const data = { failBeforeCommitExceptionCode: 91, closeConnection: false };
    await set('onPrimaryTransactionalWrite', { times: 1 }, data);
    await increment(client);
    expect(await n()).toBe(1);
    await set('onPrimaryTransactionalWrite', 'alwaysOn', { ...data, failBeforeCommitExceptionCode: 2 });
    await expect(increment(client)).rejects.toMatchObject({ code: 2 });
    expect(await n()).toBe(1);
  });
});

describe('a fail point', () => {
  it('is refused with an unknown name or mode', async () => {
    await expect(set('other', 'off')).rejects.toMatchObject({ code: 2 });
    await expect(set('failCommand', 'sometimes')).rejects.toMatchObject({ code: 2 });
    await expect(set('failCommand', { never: 1 })).rejects.toMatchObject({ code: 2 });
  });
});
