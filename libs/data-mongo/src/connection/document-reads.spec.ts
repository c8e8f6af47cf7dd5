import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { BSON, MongoClient } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Abortable, isAborted, LazyAbort, whenAborted } from '#core';
import { answerLeft, type OperationContext, StoreError } from '#data';
import { PATIENT, storeErrorCode, unhurried } from '#data/contracts';
import { readBoundedRows, readOne } from '../storage/documents.js';
import { asStoreOperation } from '../errors.js';
import { TestDatabase } from '../test-database.contract.js';
import { waitForConnection, type SentCommand, WireFront } from '../testing/wire-front.js';
import { type DocumentBatches, openRead } from './document-reads.js';
import { MongoConnection } from './mongo-connection.js';

const ROWS = 23;
const COLLECTION = 'Row';
const LIMITS = unhurried({ maxTimeMS: 4321, comment: 'read c-1' });
const ALL = { collection: COLLECTION, filter: {}, sort: { _id: 1 }, limit: ROWS } as const;
const IN_PARTS = { collection: COLLECTION, pipeline: [{ $sort: { _id: 1 } }], batchSize: 5 };

const findIds = (batch: readonly Uint8Array[]): unknown[] =>
  batch.map((bytes) => BSON.deserialize(bytes)['_id']);

async function everyId(batches: DocumentBatches): Promise<unknown[]> {
  const ids: unknown[] = [];
  do ids.push(...findIds(await batches.next()));
  while (batches.open);
  await batches.close();
  return ids;
}

/** A call that ends before its reads do, and says why. */
interface Caller extends Abortable {
  abort(reason: string): void;
}

class SignallingCaller implements Caller {
  private readonly controller = new AbortController();
  readonly signal = this.controller.signal;

  abort(reason: string): void {
    this.controller.abort(reason);
  }
}

const CALLERS: readonly [name: string, made: () => Caller][] = [
  ['a signal', () => new SignallingCaller()],
  ['a call without a signal', () => new LazyAbort()],
];

class CountedAbort extends LazyAbort {
  added = 0;
  listening = 0;
  signals = 0;

  override get signal(): AbortSignal {
    this.signals += 1;
    return super.signal;
  }

  override onAbort(listener: () => void): () => void {
    const remove = super.onAbort(listener);
    this.added += 1;
    this.listening += 1;
    return () => {
      this.listening -= 1;
      remove();
    };
  }
}

const endingWith = (caller: Caller): OperationContext => ({
  maxTimeMS: LIMITS.maxTimeMS,
  comment: LIMITS.comment,
  get signal() {
    return caller.signal;
  },
  get aborted() {
    return isAborted(caller);
  },
  onAbort: (listener) => whenAborted(caller, listener),
});

/** How a read is sent follows from the connection. */
const WAYS: readonly [way: string, options: Way][] = [
  ['as commands', { uri: '', className: 'CommandBatches', fastReads: false }],
  [
    'through cursors of the driver',
    { uri: 'retryWrites=false', className: 'CursorBatches', fastReads: false },
  ],
  ['over connections beside the driver', { uri: '', className: 'CommandBatches', fastReads: true }],
];

interface Way {
  readonly uri: string;
  readonly className: string;
  readonly fastReads: boolean;
}

const READ_COMMANDS = new Set(['find', 'aggregate', 'getMore', 'killCursors']);

describe.each(WAYS)('documents are read %s', PATIENT, (_way, way) => {
  let database: TestDatabase;
  let connection: MongoConnection;
  let admin: MongoClient;
  let front: WireFront;
  let sent: SentCommand[];
  const name = `test_${randomBytes(6).toString('hex')}`;
  const expected = Array.from({ length: ROWS }, (_, index) => `row${String(index).padStart(2, '0')}`);

  const openClient = async (more = ''): Promise<MongoConnection> => {
    const uri = [front.uri, way.uri, more].filter((part) => part !== '').join('&');
    const made = new MongoConnection({ uri, database: name, fastReads: way.fastReads });
    await made.ping(3000);
    await isFast(made);
    sent.length = 0;
    return made;
  };
  /** The first reads are the driver's, until a connection is open; so are those after one was lost. */
  const isFast = async ({ fastReads }: MongoConnection): Promise<void> => {
    if (fastReads) await waitForConnection(fastReads);
  };

  beforeAll(async () => {
    database = await TestDatabase.start();
    front = await WireFront.start(database.uri);
    admin = new MongoClient(database.uri);
    ({ sent } = front);
    connection = await openClient();
    await connection.collection(COLLECTION).insertMany(expected.map((_id, n) => ({ _id, n })));
  });
  beforeEach(async () => {
    await isFast(connection);
    sent.length = 0;
  });
  afterAll(async () => {
    await connection.db.dropDatabase();
    await connection.close();
    await admin.close();
    await front.close();
    await database.stop();
  });

  const reads = () => sent.filter((one) => READ_COMMANDS.has(one.name));
  const names = () => reads().map((one) => one.name);
  const isEmbedded = !process.env['MONGODB_URI'];
  const fail = (mode: 'alwaysOn' | { readonly times: number }, data: object) =>
    admin.db('admin').command({ configureFailPoint: 'failCommand', mode, data });
  const failNext = (times: number, data: object) => fail({ times }, data);
  const failNothing = () => admin.db('admin').command({ configureFailPoint: 'failCommand', mode: 'off' });
  /** The server ends one cursor on request during the work, or soon after it: the driver ends its own in the background. */
  const endsItsCursor = async (work: () => Promise<unknown>): Promise<void> => {
    const before = front.cursorsKilled;
    await work();
    await vi.waitFor(() => expect(front.cursorsKilled).toBe(before + 1));
  };

  it('uses the way that this connection permits', async () => {
    expect(await everyId(openRead(connection, ALL, LIMITS))).toEqual(expected);
    expect(openRead(connection, ALL, LIMITS).constructor.name).toBe(way.className);
    expect(reads().map(({ fast }) => fast)).toEqual([way.fastReads]);
  });

  it('with one command when a batch holds the limit, with its limits and its session', async () => {
    await everyId(openRead(connection, ALL, LIMITS));
    expect(names()).toEqual(['find']);
    const command = reads()[0]?.command;
    expect(command).toMatchObject({ maxTimeMS: 4321, comment: 'read c-1', limit: ROWS, batchSize: ROWS + 1 });
    expect(command?.['lsid'] !== undefined).toBe(!way.fastReads);
  });

  it('in the batches of the server, all in one session', async () => {
    expect(await everyId(openRead(connection, IN_PARTS, LIMITS))).toEqual(expected);
    expect(names()).toEqual(['aggregate', ...Array.from({ length: 4 }, () => 'getMore')]);
    expect(new Set(reads().map(({ command }) => JSON.stringify(command['lsid']))).size).toBe(1);
    expect(reads().every(({ command }) => command['comment'] === 'read c-1')).toBe(true);
  });

  it('whatever the limit, the rows to skip, the order and the size of the batches', async () => {
    const pages = fc.record({
      limit: fc.integer({ min: 1, max: ROWS + 3 }),
      skip: fc.integer({ min: 0, max: ROWS + 1 }),
      descending: fc.boolean(),
      batchSize: fc.integer({ min: 1, max: ROWS + 2 }),
    });
    await fc.assert(
      fc.asyncProperty(pages, async ({ limit, skip, descending, batchSize }) => {
        const sort = { _id: descending ? -1 : 1 };
        const page = (descending ? expected.toReversed() : expected).slice(skip, skip + limit);
        const read = { collection: COLLECTION, filter: {}, sort, skip, limit };
        expect(await everyId(openRead(connection, read, LIMITS))).toEqual(page);
        const pipeline = [{ $sort: sort }, { $skip: skip }, { $limit: limit }];
        const parts = { collection: COLLECTION, pipeline, batchSize };
        expect(await everyId(openRead(connection, parts, LIMITS))).toEqual(page);
      }),
      { numRuns: 25 },
    );
  });

  it('never of a collection that is empty or does not exist', async () => {
    const read = { ...ALL, collection: 'Missing' };
    expect(await everyId(openRead(connection, read, LIMITS))).toEqual([]);
    const pipeline = [{ $group: { _id: 1, n: { $sum: 1 } } }];
    expect(await readOne(connection, { collection: 'Missing', pipeline }, LIMITS)).toBeNull();
    expect(await readOne(connection, { collection: COLLECTION, pipeline }, LIMITS)).toEqual({
      _id: 1,
      n: ROWS,
    });
  });

  it('with the read concern of the connection string', async () => {
    const strict = await openClient('readConcernLevel=majority');
    expect(await everyId(openRead(strict, ALL, LIMITS))).toEqual(expected);
    expect(reads()[0]?.command['readConcern']).toMatchObject({ level: 'majority' });
    await strict.close();
  });

  it('until the reader closes early, which ends the open cursor', async () => {
    await endsItsCursor(async () => {
      const batches = openRead(connection, IN_PARTS, LIMITS);
      expect(findIds(await batches.next())).toEqual(expected.slice(0, 5));
      await batches.close();
    });
    expect(names()).toEqual(['aggregate', 'killCursors']);
  });

  it.runIf(isEmbedded)('and closing does not wait for a server that does not answer', async () => {
    const batches = openRead(connection, IN_PARTS, LIMITS);
    await batches.next();
    await failNext(1, { failCommands: ['killCursors'], blockConnection: true, blockTimeMS: 90_000 });
    await expect(batches.close()).resolves.toBeUndefined();
    await failNothing();
  });

  it('until the answer is too large, which ends the open cursor', async () => {
    await endsItsCursor(async () => {
      const read = { operation: LIMITS, expected: 1024, left: answerLeft(1) };
      const rows = readBoundedRows(openRead(connection, IN_PARTS, LIMITS), read, (row) => row);
      expect(await storeErrorCode(rows)).toBe('too_large');
    });
  });

  it.each(CALLERS)('until %s aborts the read, which ends it and its cursor at once', async (_name, made) => {
    const caller = made();
    await endsItsCursor(async () => {
      const operation = endingWith(caller);
      const batches = openRead(connection, IN_PARTS, operation);
      await batches.next();
      caller.abort('gone');
      expect(await storeErrorCode(asStoreOperation(operation, () => batches.next()))).toBe('cancelled');
      await batches.close();
    });
  });

  it('without a signal for a call that has none, and without a listener left behind', async () => {
    const call = new CountedAbort();
    expect(await everyId(openRead(connection, IN_PARTS, endingWith(call)))).toEqual(expected);
    expect(call.added).toBeGreaterThan(0);
    expect(call).toMatchObject({ listening: 0, signals: 0 });
  });

  describe.skipIf(!isEmbedded)('when a server fails', () => {
    const find = (operation: OperationContext = LIMITS) =>
      asStoreOperation(operation, () => everyId(openRead(connection, ALL, operation)));

    it.each([6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436])(
      'with the code %i, the read is repeated once',
      async (errorCode) => {
        await failNext(1, { failCommands: ['find'], errorCode });
        expect(await find()).toEqual(expected);
        expect(names()).toEqual(['find', 'find']);
      },
    );

    it('by closing the connection, the read is repeated once', async () => {
      await failNext(1, { failCommands: ['find'], closeConnection: true });
      expect(await find()).toEqual(expected);
      expect(names()).toEqual(['find', 'find']);
    });

    it('twice, the second error is the answer', async () => {
      await failNext(2, { failCommands: ['find'], errorCode: 91 });
      expect(await storeErrorCode(find())).toBe('unavailable');
      expect(names()).toEqual(['find', 'find']);
    });

    it.each([
      [50, 'timeout'],
      [13, 'failed'],
      [2, 'invalid_query'],
      [11601, 'cancelled'],
    ])('with the code %i, nothing is repeated', async (errorCode, code) => {
      await failNext(1, { failCommands: ['find'], errorCode });
      expect(await storeErrorCode(find())).toBe(code);
      expect(names()).toEqual(['find']);
    });

    it('in the middle of a read, nothing is repeated', async () => {
      await failNext(1, { failCommands: ['getMore'], errorCode: 91 });
      const read = asStoreOperation(undefined, () => everyId(openRead(connection, IN_PARTS, LIMITS)));
      expect(await storeErrorCode(read)).toBe('unavailable');
      expect(names().filter((command) => command !== 'killCursors')).toEqual(['aggregate', 'getMore']);
    });

    it('nothing is repeated where the connection string forbids it', async () => {
      const once = await openClient('retryReads=false');
      sent.length = 0;
      await failNext(1, { failCommands: ['find'], errorCode: 91 });
      const read = asStoreOperation(undefined, () => everyId(openRead(once, ALL, LIMITS)));
      expect(await storeErrorCode(read)).toBe('unavailable');
      expect(names()).toEqual(['find']);
      await once.close();
    });

    it.each(CALLERS)('by not answering, the reader stops waiting when %s does', async (_name, made) => {
      // Not only the next command: one of a reader who has gone may still be on its way.
      await fail('alwaysOn', { failCommands: ['find'], blockConnection: true, blockTimeMS: 90_000 });
      const caller = made();
      const read = storeErrorCode(find(endingWith(caller)));
      await vi.waitFor(() => expect(names()).toEqual(['find']));
      caller.abort('gone');
      expect(await read).toBe('cancelled');
      await failNothing();
    });
  });

  it('until the connection is closed', async () => {
    const closed = await openClient();
    await closed.close();
    expect(() => openRead(closed, ALL, LIMITS)).toThrow(StoreError);
  });
});

describe.skipIf(process.env['MONGODB_URI'])('a read is sent as commands', PATIENT, () => {
  let database: TestDatabase;
  let setName: string;
  beforeAll(async () => {
    database = await TestDatabase.start();
    const connection = new MongoConnection({ uri: database.uri, database: 'test_ways' });
    setName = String((await connection.db.command({ hello: 1 }))['setName']);
    await connection.close();
  });
  afterAll(() => database.stop());

  const set = 'directConnection=false&replicaSet=';
  it.each([
    ['CommandBatches', 'directConnection=true', 'all commands reach one server'],
    ['CommandBatches', 'directConnection=true&readPreference=nearest', 'all commands reach one server'],
    ['CommandBatches', set, 'all commands reach the primary'],
    ['CursorBatches', `${set}&readPreference=primaryPreferred`, 'another server may answer the next command'],
    ['CursorBatches', `${set}&readPreference=nearest`, 'another server may answer the next command'],
    ['CursorBatches', 'directConnection=true&retryWrites=false', 'the driver repeats overloaded reads alone'],
  ])('by the driver instead: %s with %s, because %s', async (way, options) => {
    const uri = new URL(database.uri);
    uri.search = options.replace('replicaSet=', `replicaSet=${setName}`);
    const connection = new MongoConnection({ uri: uri.href, database: 'test_ways' });
    await connection.ping(3000);
    expect(openRead(connection, ALL, LIMITS).constructor.name).toBe(way);
    expect(await everyId(openRead(connection, ALL, LIMITS))).toEqual([]);
    await connection.close();
  });

  it('only when the driver knows its servers', async () => {
    const connection = new MongoConnection({ uri: database.uri, database: 'test_ways' });
    const first = openRead(connection, { ...ALL, limit: 1 }, LIMITS);
    expect(first.constructor.name).toBe('CursorBatches');
    expect(await everyId(first)).toEqual([]);
    expect(openRead(connection, ALL, LIMITS).constructor.name).toBe('CommandBatches');
    await connection.close();
  });
});
