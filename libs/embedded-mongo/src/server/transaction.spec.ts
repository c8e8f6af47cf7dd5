import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Double } from 'bson';
import {
  type ClientSession,
  type Collection,
  type Db,
  type Document,
  Long,
  MongoClient,
  UUID,
} from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '../embedded-mongo.js';
import { decodeDocument } from '../wire/decode.js';
import { encodeDocument } from '../wire/encode.js';
import { Framer } from '../wire/message.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** Sends commands as they are: the driver would put its own session into them. */
class RawConnection {
  private readonly waiting: ((reply: Document) => void)[] = [];

  private constructor(private readonly socket: Socket) {
    const framer = new Framer();
    socket.on('data', (chunk) => {
      for (const message of framer.push(chunk)) this.waiting.shift()?.(decodeDocument(message.subarray(21)));
    });
  }

  static async open(to: EmbeddedMongo): Promise<RawConnection> {
    const socket = connect(to.port, to.host);
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  run(command: Document): Promise<Document> {
    const body = encodeDocument({ ...command, $db: command['$db'] ?? 'bank' });
    const head = Buffer.alloc(21);
    head.writeInt32LE(21 + body.length, 0);
    head.writeInt32LE(2013, 12);
    this.socket.write(Buffer.concat([head, body]));
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  close(): void {
    this.socket.destroy();
  }
}

type Account = Document & { _id: string; balance: number };

let server: EmbeddedMongo;
let client: MongoClient;
let db: Db;
let accounts: Collection<Account>;
let session: ClientSession;
let made = 0;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = await MongoClient.connect(server.uri);
  db = client.db('bank');
});
afterAll(async () => {
  await client.close();
  await server.close();
});
beforeEach(async () => {
  accounts = db.collection(`accounts-${(made += 1)}`);
  await accounts.insertMany([
    { _id: 'a', balance: 100 },
    { _id: 'b', balance: 0 },
  ]);
  session = client.startSession();
});

const balances = async (inside?: ClientSession): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await accounts.find({}, inside ? { session: inside } : {}).toArray()).map(({ _id, balance }) => [
      _id,
      balance,
    ]),
  );

const add = (_id: string, amount: number, inside?: ClientSession) =>
  accounts.updateOne({ _id }, { $inc: { balance: amount } }, inside ? { session: inside } : {});

const conflict = expect.objectContaining({
  code: 112,
  errorLabelSet: new Set(['TransientTransactionError']),
});

describe('a transaction', () => {
  it('shows its writes to itself at once and to others only after the commit', async () => {
    session.startTransaction();
    await add('a', -30, session);
    await add('b', 30, session);
    expect(await balances(session)).toEqual({ a: 70, b: 30 });
    expect(await balances()).toEqual({ a: 100, b: 0 });
    await session.commitTransaction();
    expect(await balances()).toEqual({ a: 70, b: 30 });
  });

  it('ends at a write to what another open transaction wrote, an insert as well', async () => {
    await client.withSession(async (other) => {
      session.startTransaction();
      await accounts.insertOne({ _id: 'c', balance: 1 }, { session });
      other.startTransaction();
      await expect(accounts.insertOne({ _id: 'c', balance: 2 }, { session: other })).rejects.toThrow(
        conflict,
      );
      await session.commitTransaction();
    });
    expect(await balances()).toEqual({ a: 100, b: 0, c: 1 });
  });

  it.each([
    [{ insert: 'c', documents: [{}], writeConcern: { w: 1 } }, 72],
    [{ insert: 'c', documents: [{}], $db: 'config' }, 263],
    [{ aggregate: 'c', pipeline: [{ $unionWith: 'd' }], cursor: {} }, 263],
  ])('refuses %j', async (command, number) => {
    const raw = await RawConnection.open(server);
    const start = {
      lsid: { id: new UUID() },
      txnNumber: Long.ONE,
      autocommit: false,
      startTransaction: true,
    };
    expect(await raw.run({ ...command, ...start })).toMatchObject({ code: number });
    raw.close();
  });

  it('ends with its session when that is killed', async () => {
    session.startTransaction();
    await add('a', -30, session);
    await db.admin().command({ killSessions: [session.id] });
    await client.withSession(async (other) => {
      other.startTransaction();
      await add('a', 1, other);
      await other.commitTransaction();
    });
    await expect(session.commitTransaction()).rejects.toThrow(expect.objectContaining({ code: 251 }));
  });

  it('leaves nothing behind when it is aborted', async () => {
    const fresh = db.collection(`fresh-${made}`);
    session.startTransaction();
    await add('a', -30, session);
    await fresh.insertOne({}, { session });
    await session.abortTransaction();
    expect(await balances()).toEqual({ a: 100, b: 0 });
    expect(await db.listCollections({ name: fresh.collectionName }).toArray()).toEqual([]);
  });

  it('reads the data of its beginning, whatever others write meanwhile', async () => {
    session.startTransaction();
    expect(await balances(session)).toEqual({ a: 100, b: 0 });
    await add('b', 5);
    await accounts.insertOne({ _id: 'c', balance: 1 });
    expect(await balances(session)).toEqual({ a: 100, b: 0 });
    await session.commitTransaction();
  });

  it('is refused with 112 when another writer was faster, before or at the commit', async () => {
    session.startTransaction();
    await balances(session);
    await add('a', 1);
    await expect(add('a', 1, session)).rejects.toThrow(conflict);
    await session.abortTransaction();

    session.startTransaction();
    await add('a', 1, session);
    await add('a', 1);
    await expect(session.commitTransaction()).rejects.toThrow(conflict);
    expect(await balances()).toEqual({ a: 102, b: 0 });
  });

  it('applies all of it or nothing when a unique key was taken meanwhile', async () => {
    await accounts.createIndex({ mail: 1 }, { unique: true, sparse: true });
    session.startTransaction();
    await add('b', 9, session);
    await accounts.insertOne({ _id: 'c', balance: 0, mail: 'x' }, { session });
    await accounts.insertOne({ _id: 'd', balance: 0, mail: 'x' });
    await expect(session.commitTransaction()).rejects.toThrow(conflict);
    expect(await balances()).toEqual({ a: 100, b: 0, d: 0 });
  });

  it('ends with its first failed statement', async () => {
    session.startTransaction();
    await add('a', -1, session);
    await expect(accounts.insertOne({ _id: 'b', balance: 0 }, { session })).rejects.toThrow(
      expect.objectContaining({ code: 11000 }),
    );
    await expect(add('a', 1, session)).rejects.toThrow(expect.objectContaining({ code: 251 }));
    await session.abortTransaction();
    expect(await balances()).toEqual({ a: 100, b: 0 });
  });

  it('keeps the sum of all balances when many run at once and retry', async () => {
    const transfer = async (from: string, to: string): Promise<void> => {
      await client.withSession(async (own) => {
        await own.withTransaction(async () => {
          await add(from, -1, own);
          await add(to, 1, own);
        });
      });
    };
    await Promise.all(
      Array.from({ length: 12 }, (_, i) => (i % 3 === 0 ? transfer('b', 'a') : transfer('a', 'b'))),
    );
    expect(await balances()).toEqual({ a: 96, b: 4 });
  });

  it('waits a moment for its start when a later statement arrives first', async () => {
    const [one, two] = await Promise.all([RawConnection.open(server), RawConnection.open(server)]);
    const common = { lsid: { id: new UUID() }, txnNumber: Long.fromNumber(1), autocommit: false };
    const insert = accounts.collectionName;
    const late = one.run({ insert, documents: [{ _id: 'late' }], ...common });
    const start = two.run({ insert, documents: [{ _id: 'first' }], startTransaction: true, ...common });
    expect(await Promise.all([late, start])).toMatchObject([{ n: 1 }, { n: 1 }]);
    expect(await one.run({ commitTransaction: 1, ...common, $db: 'admin' })).toMatchObject({
      ok: new Double(1),
    });
    expect(await accounts.countDocuments()).toBe(4);
    one.close();
    two.close();
  });

  it('is unknown when it never starts, and over once its number is passed', async () => {
    const raw = await RawConnection.open(server);
    const lsid = { id: new UUID() };
    const statement = (txnNumber: number, more = {}) =>
      raw.run({ find: 'x', lsid, txnNumber: Long.fromNumber(txnNumber), autocommit: false, ...more });
    expect(await statement(5)).toMatchObject({ code: 251, errorLabels: ['TransientTransactionError'] });
    expect(await statement(5, { startTransaction: true })).toMatchObject({ ok: new Double(1) });
    expect(await statement(5, { startTransaction: true })).toMatchObject({ code: 117 });
    expect(await statement(4, { startTransaction: true })).toMatchObject({ code: 225 });
    raw.close();
  });

  it.each([
    ['count', { count: 'x' }],
    ['dropDatabase', { dropDatabase: 1 }],
  ])('refuses %s inside it', async (_title, command) => {
    session.startTransaction();
    await expect(db.command(command, { session })).rejects.toThrow(expect.objectContaining({ code: 263 }));
    await session.abortTransaction();
  });

  it('creates indexes of the collections that it creates, and of no others', async () => {
    const fresh = db.collection(`fresh${(made += 1)}`);
    session.startTransaction();
    await fresh.createIndex({ n: 1 }, { name: 'by_n', unique: true, session });
    await fresh.insertOne({ n: 1 }, { session });
    expect(await db.listCollections({ name: fresh.collectionName }).toArray()).toEqual([]);
    await session.commitTransaction();
    expect((await fresh.indexes()).map(({ name }) => name)).toEqual(['_id_', 'by_n']);
    await expect(fresh.insertOne({ n: 1 })).rejects.toThrow(expect.objectContaining({ code: 11000 }));
    session.startTransaction();
    const late = fresh.createIndex({ m: 1 }, { session });
    await expect(late).rejects.toThrow(expect.objectContaining({ code: 263 }));
    await session.abortTransaction();
    expect(await fresh.indexes()).toHaveLength(2);
  });

  it('appears in change streams as one group', async () => {
    const stream = accounts.watch();
    const first = stream.next();
    session.startTransaction();
    await add('a', -5, session);
    await add('b', 5, session);
    await session.commitTransaction();
    const events = [await first, await stream.next()];
    expect(events.map((event) => event.operationType)).toEqual(['update', 'update']);
    expect(events[0]?.clusterTime).toEqual(events[1]?.clusterTime);
    await stream.close();
  });
});

describe('a retryable write', () => {
  it('is done once although it is sent twice', async () => {
    const raw = await RawConnection.open(server);
    const command = {
      update: accounts.collectionName,
      updates: [{ q: { _id: 'a' }, u: { $inc: { balance: 1 } } }],
      lsid: { id: new UUID() },
      txnNumber: Long.fromNumber(9),
    };
    expect(await raw.run(command)).toMatchObject({ n: 1, nModified: 1 });
    expect(await raw.run(command)).toMatchObject({ n: 1, nModified: 1 });
    expect(await balances()).toEqual({ a: 101, b: 0 });
    expect(await raw.run({ ...command, txnNumber: Long.fromNumber(8) })).toMatchObject({ code: 225 });
    raw.close();
  });

  it('survives a lost connection', async () => {
    const admin = client.db('admin');
    await admin.command({
      configureFailPoint: 'failCommand',
      mode: { times: 1 },
      data: { failCommands: ['update'], closeConnection: true },
    });
    await add('a', 1);
    expect(await balances()).toEqual({ a: 101, b: 0 });
  });
});

describe('a snapshot session', () => {
  it('reads the data of its first read in every later one, and so does another session at its time', async () => {
    const reads = client.startSession({ snapshot: true });
    const own = { session: reads };
    expect(await accounts.findOne({ _id: 'a' }, own)).toMatchObject({ balance: 100 });
    await add('a', 1);
    await accounts.insertOne({ _id: 'new', balance: 7 });
    expect(await accounts.distinct('balance', {}, own)).toEqual([0, 100]);
    expect(await accounts.countDocuments({}, own)).toBe(2);
    expect(await accounts.find({}, { ...own, batchSize: 1 }).toArray()).toHaveLength(2);
    const later = client.startSession({ snapshot: true });
    expect(await accounts.distinct('balance', {}, { session: later })).toEqual([0, 7, 101]);
    await expect(accounts.insertOne({ _id: 'x', balance: 1 }, own)).rejects.toThrow(
      expect.objectContaining({ code: 72 }),
    );
    const copy = accounts.aggregate([{ $out: 'copy' }], own).toArray();
    await expect(copy).rejects.toThrow(expect.objectContaining({ code: 72 }));
    await Promise.all([reads.endSession(), later.endSession()]);
  });
});

describe('a standalone', () => {
  it('refuses transaction numbers with 20', async () => {
    const alone = await EmbeddedMongo.start({ replSet: false });
    const raw = await RawConnection.open(alone);
    const statement = {
      find: 'c',
      lsid: { id: new UUID() },
      txnNumber: Long.fromNumber(1),
      autocommit: false,
    };
    expect(await raw.run(statement)).toMatchObject({ code: 20 });
    raw.close();
    await alone.close();
  });
});
