import { connect } from 'node:net';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient, type Collection, type Db, type Document } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '../embedded-mongo.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let server: EmbeddedMongo;
let client: MongoClient;
let admin: Db;
let many: Collection;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = await MongoClient.connect(server.uri);
  admin = client.db('admin');
  many = client.db('ops').collection('many');
  await many.insertMany(Array.from({ length: 1_000 }, (_, n) => ({ n, text: `${'a'.repeat(30)}!` })));
});
afterAll(async () => {
  await client.close();
  await server.close();
});

const code = (number: number): unknown => expect.objectContaining({ code: number });

/** Matches nothing and takes long: each document makes a large array and sorts it. */
const slow = {
  $expr: {
    $eq: [{ $size: { $sortArray: { input: { $range: [0, { $add: [4_000, '$n'] }] }, sortBy: -1 } } }, -1],
  },
};

/** Resolves with the operation that carries the comment, as soon as it runs. */
async function findRunning(comment: string): Promise<number> {
  for (;;) {
    const { inprog } = await admin.command({ currentOp: 1, 'command.comment': comment });
    const [operation] = inprog as { opid: number }[];
    if (operation) return operation.opid;
  }
}

describe('a running operation', () => {
  it('ends with 50 when its time is over', async () => {
    await expect(many.find(slow, { maxTimeMS: 20 }).toArray()).rejects.toThrow(code(50));
    await expect(
      many.aggregate([{ $match: slow }, { $count: 'n' }], { maxTimeMS: 20 }).toArray(),
    ).rejects.toThrow(code(50));
    await expect(many.updateMany(slow, { $set: { x: 1 } }, { maxTimeMS: 20 })).rejects.toThrow(code(50));
  });

  it('keeps its time limit over the batches of its cursor', async () => {
    const cursor = many.find(
      { $expr: { $gte: [{ $size: { $range: [0, 3_000] } }, 0] } },
      { batchSize: 1, maxTimeMS: 60 },
    );
    const all = async (): Promise<void> => {
      while (await cursor.hasNext()) await cursor.next();
    };
    await expect(all()).rejects.toThrow(code(50));
  });

  it('is seen by its comment and can be killed, while others are served', async () => {
    const doomed = many.find(slow, { comment: 'kill me' }).toArray();
    const failure = doomed.catch((error: unknown) => error);
    const opid = await findRunning('kill me');
    expect(await many.findOne({ n: 5 })).toMatchObject({ n: 5 });
    await admin.command({ killOp: 1, op: opid });
    expect(await failure).toEqual(code(11601));
    const { inprog } = await admin.command({ currentOp: 1, 'command.comment': 'kill me' });
    expect(inprog).toEqual([]);
  });

  it('ends when its client goes away', async () => {
    const other = await MongoClient.connect(server.uri);
    const abandoned = other.db('ops').collection('many').find(slow, { comment: 'gone' }).toArray();
    const failure = abandoned.catch((error: unknown) => error);
    await findRunning('gone');
    await other.close();
    expect(await failure).toBeInstanceOf(Error);
    for (;;) {
      const { inprog } = await admin.command({ currentOp: 1, 'command.comment': 'gone' });
      if ((inprog as unknown[]).length === 0) break;
    }
    expect(await many.estimatedDocumentCount()).toBe(1_000);
  });

  it('is not stalled by a regular expression made to explode', async () => {
    const bomb = many.countDocuments({ n: { $lt: 100 }, text: /^(a+)+$/ });
    expect(await many.findOne({ n: 7 })).toMatchObject({ n: 7 });
    expect(await bomb).toBe(0);
  });
});

describe('long pipelines', () => {
  const numbers = (count: number, name: string) => [
    { $project: { [name]: { $range: [0, count] } } },
    { $unwind: `$${name}` },
  ];
  /** A hundred thousand rows and more, made of one, and what becomes of them. */
  const long = (hundreds: number, ...stages: Document[]): Document[] => [
    { $limit: 1 },
    ...numbers(100 * hundreds, 'i'),
    ...numbers(300, 'j'),
    ...stages,
  ];
  const collectors: [string, Document[], number?][] = [
    ['$group', [{ $group: { _id: '$j', n: { $sum: 1 } } }]],
    ['$match', [{ $match: { j: -1 } }], 12],
    ['$skip', [{ $skip: 350_000 }, { $count: 'n' }], 12],
    ['$sort', [{ $sort: { j: -1 } }, { $limit: 1 }]],
    ['$facet', [{ $facet: { all: [{ $count: 'n' }], none: [{ $match: { j: -1 } }] } }]],
    ['$bucketAuto', [{ $bucketAuto: { groupBy: '$j', buckets: 3 } }]],
    [
      '$setWindowFields',
      [{ $setWindowFields: { sortBy: { j: 1 }, output: { n: { $sum: '$j' } } } }, { $count: 'n' }],
    ],
    ['$redact', [{ $redact: '$$PRUNE' }], 12],
    ['$lookup', [{ $lookup: { from: 'list', pipeline: [], as: 'all' } }, { $count: 'n' }]],
  ];

  it.each(collectors)(
    'with %s let short commands in, however many there are',
    async (_, stages, hundreds = 3) => {
      let ended = 0;
      const running = Array.from({ length: 8 }, () =>
        many
          .aggregate(long(hundreds, ...stages))
          .toArray()
          .then((rows) => (ended += 1) && rows),
      );
      // One round of the event loop: they are under way.
      await admin.command({ ping: 1 });
      const before: number[] = [];
      for (let at = 0; at < 3; at += 1) {
        expect(await many.findOne({ n: at })).toMatchObject({ n: at });
        before.push(ended);
      }
      expect(before).toEqual([0, 0, 0]);
      const [first, ...others] = await Promise.all(running);
      for (const rows of others) expect(rows).toEqual(first);
    },
  );

  it('join what was there when they began', async () => {
    const db = client.db('ops');
    await db.collection<{ _id: number }>('joined').insertMany([{ _id: 1 }, { _id: 2 }]);
    const joins = many
      .aggregate(
        long(
          3,
          { $group: { _id: 'own' } },
          { $lookup: { from: 'joined', pipeline: [], as: 'looked' } },
          {
            $graphLookup: {
              from: 'joined',
              startWith: [1, 2, 3],
              connectFromField: 'x',
              connectToField: '_id',
              as: 'walked',
            },
          },
          { $unionWith: 'joined' },
        ),
        { comment: 'joins' },
      )
      .toArray();
    await findRunning('joins');
    await db.collection<{ _id: number }>('joined').insertOne({ _id: 3 });
    const [own, ...united] = await joins;
    const ids = (rows: unknown) => (rows as Document[]).map(({ _id }) => _id as number).sort((a, b) => a - b);
    expect([ids(own?.['looked']), ids(own?.['walked']), ids(united)]).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ]);
  });

  it('end with 50 where a single expression takes too long, with or without a time limit', async () => {
    const mapNumbers = (input: object, body: unknown) => ({ $map: { input, in: body } });
    const endless = mapNumbers({ $range: [0, 100_000] }, { $size: mapNumbers({ $range: [0, 1_000] }, 1) });
    const pipeline = [{ $limit: 1 }, { $project: { x: { $size: endless } } }];
    const failed = [
      many.aggregate(pipeline).toArray(),
      many.aggregate(pipeline, { maxTimeMS: 50_000 }).toArray(),
      many.findOne({ $expr: { $eq: [{ $size: endless }, 0] } }),
    ].map((answer) => answer.catch((error: unknown) => error));
    for (const error of await Promise.all(failed)) {
      expect(error).toEqual(code(50));
      expect(error).toMatchObject({ message: expect.stringContaining('on one document') as string });
    }
  });
});

describe('a cursor', () => {
  it('is gone once it is killed', async () => {
    const cursor = many.find({}, { batchSize: 2 });
    await cursor.next();
    const { id } = cursor;
    await cursor.close();
    await expect(client.db('ops').command({ getMore: id, collection: 'many' })).rejects.toThrow(code(43));
    const reply = await client.db('ops').command({ killCursors: 'many', cursors: [id] });
    expect(reply['cursorsKilled']).toEqual([]);
    expect((reply['cursorsNotFound'] as unknown[]).map(String)).toEqual([String(id)]);
  });

  it('belongs to its namespace', async () => {
    const cursor = many.find({}, { batchSize: 2 });
    await cursor.next();
    await expect(client.db('ops').command({ getMore: cursor.id, collection: 'other' })).rejects.toThrow(
      code(13),
    );
    await cursor.close();
  });

  it('ends with its collection', async () => {
    const gone = client.db('ops').collection('gone');
    await gone.insertMany([{}, {}, {}]);
    const cursor = gone.find({}, { batchSize: 1 });
    await cursor.next();
    await gone.drop();
    await expect(cursor.next()).rejects.toThrow(code(175));
  });

  it('shows the documents of its beginning', async () => {
    const list = client.db('ops').collection<{ _id: number; n: number }>('list');
    await list.insertMany([1, 2, 3, 4].map((_id) => ({ _id, n: 0 })));
    const cursor = list.find({}, { batchSize: 1 });
    await cursor.next();
    await list.updateMany({}, { $set: { n: 1 } });
    await list.deleteOne({ _id: 4 });
    expect(await cursor.toArray()).toEqual([2, 3, 4].map((_id) => ({ _id, n: 0 })));
  });
});

describe('a change stream', () => {
  it('waits for changes and resumes after the last one seen', async () => {
    const feed = client.db('ops').collection<{ _id: number; n?: number }>('feed');
    await feed.insertOne({ _id: 0 });
    const stream = feed.watch([{ $match: { operationType: { $in: ['insert', 'update'] } } }], {
      fullDocument: 'updateLookup',
    });
    const first = stream.next();
    await feed.insertOne({ _id: 1 });
    expect(await first).toMatchObject({
      operationType: 'insert',
      fullDocument: { _id: 1 },
      ns: { db: 'ops', coll: 'feed' },
    });
    await stream.close();
    await feed.updateOne({ _id: 1 }, { $set: { n: 5 } });
    await feed.deleteOne({ _id: 0 });
    await feed.insertOne({ _id: 2 });
    const resumed = feed.watch([], { resumeAfter: (await first)._id });
    expect([await resumed.next(), await resumed.next(), await resumed.next()]).toMatchObject([
      {
        operationType: 'update',
        documentKey: { _id: 1 },
        updateDescription: { updatedFields: { n: 5 }, removedFields: [] },
      },
      { operationType: 'delete', documentKey: { _id: 0 } },
      { operationType: 'insert', documentKey: { _id: 2 } },
    ]);
    await resumed.close();
  });

  it('watches a database and the whole server', async () => {
    const whole = client.watch();
    const one = client.db('watched').watch();
    const seen = [whole.next(), one.next()];
    await client.db('watched').collection('x').insertOne({ n: 1 });
    for (const event of await Promise.all(seen))
      expect(event).toMatchObject({ ns: { db: 'watched', coll: 'x' } });
    await Promise.all([whole.close(), one.close()]);
  });

  it('ends at once when it is closed while it waits', async () => {
    const stream = many.watch([], { maxAwaitTimeMS: 60_000 });
    const waiting = stream.next().catch((error: unknown) => error);
    await stream.close();
    expect(await waiting).toBeInstanceOf(Error);
  });

  it('refuses what it would get wrong', async () => {
    const open = (stage: object, more: object[] = []) =>
      client
        .db('ops')
        .command({ aggregate: 'feed', pipeline: [{ $changeStream: stage }, ...more], cursor: {} });
    await expect(open({}, [{ $group: { _id: 1 } }])).rejects.toThrow(code(20));
    await expect(open({ fancy: 1 })).rejects.toThrow(code(40415));
    await expect(open({ fullDocument: 'always' })).rejects.toThrow(code(2));
    await expect(open({ resumeAfter: { _data: 'ff' } })).rejects.toThrow(code(50811));
  });
});

describe('diagnostics', () => {
  it('describe the server and its data', async () => {
    expect(await admin.command({ buildInfo: 1 })).toMatchObject({ version: '8.0.0' });
    expect(await admin.command({ serverStatus: 1 })).toMatchObject({ storageEngine: { persistent: false } });
    expect(await admin.command({ replSetGetStatus: 1 })).toMatchObject({ set: 'rs0', myState: 1 });
    expect(await admin.command({ connectionStatus: 1 })).toMatchObject({
      authInfo: { authenticatedUsers: [] },
    });
    expect(await admin.command({ getParameter: 1, featureCompatibilityVersion: 1 })).toMatchObject({
      featureCompatibilityVersion: { version: '8.0' },
    });
    const stats = await client.db('ops').command({ collStats: 'many' });
    expect(stats).toMatchObject({ count: 1_000, nindexes: 1 });
    const [row] = await many.aggregate([{ $collStats: { count: {} } }]).toArray();
    expect(row).toMatchObject({ ns: 'ops.many', count: 1_000 });
    expect(row).not.toHaveProperty('storageStats');
    const asked = [{ count: 1 }, { count: { a: 1 } }, { counts: {} }, { latencyStats: {} }];
    for (const [i, expected] of [14, 31170, 40415, 238].entries())
      await expect(many.aggregate([{ $collStats: asked[i] }]).toArray()).rejects.toThrow(code(expected));
    const none = client
      .db('ops')
      .collection('none')
      .aggregate([{ $collStats: { count: {} } }]);
    await expect(none.toArray()).rejects.toThrow(code(26));
    await expect(many.aggregate([{ $indexStats: {}, $limit: 1 }]).toArray()).rejects.toThrow(code(40323));
    expect(await client.db('ops').stats()).toMatchObject({ db: 'ops' });
    const [own] = await admin.aggregate([{ $currentOp: {} }, { $match: { active: true } }]).toArray();
    expect(own).toMatchObject({ ns: 'admin.$cmd' });
  });

  it('make chosen commands fail as often as told', async () => {
    const arm = (mode: unknown, data: object) =>
      admin.command({ configureFailPoint: 'failCommand', mode, data });
    await arm({ times: 2 }, { failCommands: ['ping'], errorCode: 91, errorLabels: ['SomeLabel'] });
    const failure = expect.objectContaining({ code: 91, errorLabelSet: new Set(['SomeLabel']) });
    await expect(admin.command({ ping: 1 })).rejects.toThrow(failure);
    await expect(admin.command({ ping: 1 })).rejects.toThrow(failure);
    expect(await admin.command({ ping: 1 })).toMatchObject({ ok: 1 });
    await arm('off', {});
  });
});

describe('the listener', () => {
  it.each(['0.0.0.0', '::', '10.0.0.1', 'example.org'])('refuses to listen on %s', async (host) => {
    await expect(EmbeddedMongo.start({ host })).rejects.toThrow(TypeError);
  });

  it('serves a unix socket that only its owner may use', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embedded-'));
    const path = join(folder, 'mongo.sock');
    const local = await EmbeddedMongo.start({ path });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const socketClient = await MongoClient.connect(local.uri);
    expect(await socketClient.db('x').command({ ping: 1 })).toMatchObject({ ok: 1 });
    await socketClient.close();
    await expect(EmbeddedMongo.start({ path })).rejects.toThrow('EADDRINUSE');
    await local.close();
    rmSync(folder, { recursive: true });
  });

  it('takes over the unix socket of a server that crashed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embedded-'));
    const path = join(folder, 'mongo.sock');
    const crash = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', crash]);
    expect(statSync(path).isSocket()).toBe(true);
    const next = await EmbeddedMongo.start({ path });
    await next.close();
    rmSync(folder, { recursive: true });
  });

  it('closes connections beyond its limit and those that do not speak the protocol', async () => {
    const small = await EmbeddedMongo.start({ maxConnections: 1 });
    const first = connect(small.port, small.host);
    await once(first, 'connect');
    const second = connect(small.port, small.host);
    await once(second, 'close');
    first.write('GET / HTTP/1.1\r\n\r\n');
    await once(first, 'close');
    expect([first.destroyed, second.destroyed]).toEqual([true, true]);
    await small.close();
  });

  it('keeps its data in a file from one start to the next', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embedded-'));
    const dataFile = join(folder, 'data');
    for (const round of [1, 2, 3]) {
      const persistent = await EmbeddedMongo.start({ dataFile });
      const own = await MongoClient.connect(persistent.uri);
      await own
        .db('d')
        .collection('c')
        .insertOne({ round }, { writeConcern: { w: 1, journal: true } });
      expect((await own.db('d').collection('c').find().toArray()).map((one) => one['round'])).toHaveLength(
        round,
      );
      await own.close();
      await persistent.close();
    }
    rmSync(folder, { recursive: true });
  });
});
