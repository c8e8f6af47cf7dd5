import { type Collection, type Document, MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '../embedded-mongo.js';
import { ReplicaSet } from './server-state.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const code = (number: number): unknown => expect.objectContaining({ code: number });

describe('a replica set of two members', () => {
  let server: EmbeddedMongo;
  let client: MongoClient;
  let rows: Collection<{ _id: number; n: number }>;
  beforeAll(async () => {
    server = await EmbeddedMongo.start({ members: 2 });
    client = await MongoClient.connect(server.uri);
    rows = client.db('d').collection('rows');
    await rows.insertOne({ _id: 0, n: 0 });
  });
  afterAll(async () => {
    await client.close();
    await server.close();
  });

  const admin = (command: Document) => client.db('admin').command(command);
  const primary = async (): Promise<unknown> => (await admin({ hello: 1 }))['primary'];
  /** A client of one member that stays with it, whatever it is. */
  const connectTo = (host: unknown) =>
    MongoClient.connect(`mongodb://${String(host)}/?directConnection=true&retryWrites=false`);

  it('has another primary after a step-down, which the driver finds by itself', async () => {
    const before = await primary();
    await server.stepDown({ seconds: 1 });
    await rows.updateOne({ _id: 0 }, { $inc: { n: 1 } });
    expect(await rows.findOne({ _id: 0 })).toEqual({ _id: 0, n: 1 });
    const after = await primary();
    expect(after).not.toBe(before);
    const status = await admin({ replSetGetStatus: 1 });
    expect((status['members'] as Document[]).map(({ name, stateStr }) => [name, stateStr])).toEqual(
      expect.arrayContaining([
        [after, 'PRIMARY'],
        [before, 'SECONDARY'],
      ]),
    );
  });

  it('steps down by command, with and without cutting connections', async () => {
    const before = await primary();
    await admin({ replSetStepDown: 1, secondaryCatchUpPeriodSecs: 0, force: true });
    await rows.insertOne({ _id: 1, n: 1 });
    const between = await primary();
    expect(between).not.toBe(before);
    await admin({ replSetStepDown: 1, force: true, closeConnections: true }).catch(() => undefined);
    await rows.insertOne({ _id: 2, n: 2 });
    expect(await primary()).toBe(before);
  });

  it('refuses on the former primary what only a primary does', async () => {
    const former = await primary();
    await server.stepDown({ seconds: 1 });
    const secondary = await connectTo(former);
    try {
      const theirs = secondary.db('d').collection<{ _id: number }>('rows');
      await expect(theirs.insertOne({ _id: 99 })).rejects.toThrow(code(10107));
      await expect(secondary.db('d').dropDatabase()).rejects.toThrow(code(10107));
      // A direct connection reads from whatever it is connected to.
      expect(await theirs.countDocuments({ _id: 0 })).toBe(1);
      await expect(secondary.db('admin').command({ replSetStepDown: 1, force: true })).rejects.toThrow(
        code(10107),
      );
      expect(await secondary.db('admin').command({ hello: 1 })).toMatchObject({
        isWritablePrimary: false,
        secondary: true,
      });
    } finally {
      await secondary.close();
    }
  });

  it('aborts open transactions, which the driver begins again', async () => {
    let attempts = 0;
    await client.withSession((session) =>
      session.withTransaction(async () => {
        attempts += 1;
        await rows.updateOne({ _id: 0 }, { $inc: { n: 10 } }, { session });
        if (attempts === 1) await server.stepDown({ seconds: 1 });
        await rows.insertOne({ _id: 10, n: 0 }, { session });
      }),
    );
    expect(attempts).toBe(2);
    expect(await rows.findOne({ _id: 0 })).toMatchObject({ n: 11 });
  });

  it('goes on with a change stream on the new primary', async () => {
    const stream = rows.watch();
    const seen: unknown[] = [];
    const collected = (async () => {
      for await (const change of stream) {
        seen.push('documentKey' in change ? change.documentKey : change);
        if (seen.length === 2) return;
      }
    })();
    // The stream is open once its first getMore runs.
    await vi.waitFor(async () => {
      const { inprog } = await admin({ currentOp: 1, op: 'getmore' });
      expect(inprog).not.toHaveLength(0);
    });
    await rows.insertOne({ _id: 20, n: 0 });
    await server.stepDown({ seconds: 1, closeConnections: true });
    // The driver does not send a write again whose connection was cut after another connection had reported the loss.
    await vi.waitFor(() => rows.updateOne({ _id: 21 }, { $set: { n: 0 } }, { upsert: true }));
    await collected;
    await stream.close();
    expect(seen).toEqual([{ _id: 20 }, { _id: 21 }]);
  });

  it('does no write twice while its members step down all the time', async () => {
    await rows.insertOne({ _id: 30, n: 0 });
    let running = true;
    const steps = (async () => {
      for (let round = 0; round < 4; round += 1) {
        await server.stepDown({ seconds: 1, closeConnections: round % 2 === 0 }).catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, 700));
      }
      running = false;
    })();
    let acknowledged = 0;
    let uncertain = 0;
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        // A busy machine may get little done before the last election.
        while (running || acknowledged <= 10) {
          // Nothing of the driver's two attempts may count twice; what failed both times may have been done or not.
          await rows.updateOne({ _id: 30 }, { $inc: { n: 1 } }).then(
            () => (acknowledged += 1),
            () => (uncertain += 1),
          );
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      }),
    );
    await steps;
    const { n } = (await rows.findOne({ _id: 30 })) ?? { n: NaN };
    expect(n).toBeGreaterThanOrEqual(acknowledged);
    expect(n).toBeLessThanOrEqual(acknowledged + uncertain);
  });
});

describe('a set of one member', () => {
  it('steps down only when forced, and is the primary again after its time', async () => {
    const server = await EmbeddedMongo.start();
    const client = await MongoClient.connect(server.uri, { retryWrites: false });
    try {
      const rows = client.db('d').collection<{ _id: number }>('rows');
      const stepDown = (more: Document) => client.db('admin').command({ replSetStepDown: 0.5, ...more });
      await expect(stepDown({})).rejects.toThrow(code(262));
      await stepDown({ force: true });
      await expect(rows.insertOne({ _id: 1 })).rejects.toThrow(code(10107));
      await vi.waitFor(() => rows.insertOne({ _id: 1 }), { timeout: 10_000, interval: 50 });
      await expect(client.db('admin').command({ replSetStepDown: -1 })).rejects.toThrow(code(2));
    } finally {
      await client.close();
      await server.close();
    }
  });

  it('is refused with 76 on a standalone', async () => {
    const server = await EmbeddedMongo.start({ replSet: false });
    const client = await MongoClient.connect(server.uri);
    await expect(server.stepDown()).rejects.toThrow('not running with --replSet');
    await expect(client.db('admin').command({ replSetStepDown: 1, force: true })).rejects.toThrow(code(76));
    await client.close();
    await server.close();
  });
});

describe('who is elected', () => {
  it('is the next member that may be, after a moment without a primary', () => {
    let now = 1_000;
    const set = new ReplicaSet('rs0', 3, () => now);
    set.addresses = ['a:1', 'b:1', 'c:1'];
    set.stepDown(0, 10);
    expect(set.primary).toBeUndefined();
    now += 200;
    expect(set.primary).toBe(1);
    set.stepDown(1, 60);
    now += 200;
    expect(set.primary).toBe(2);
    set.stepDown(2, 30);
    now += 200;
    // The first one may be elected again before the others.
    expect(set.primary).toBeUndefined();
    now += 10_000;
    expect(set.primary).toBe(0);
    expect(set.term).toBe(4);
  });

  it('refuses numbers of members that make no set', async () => {
    for (const options of [{ members: 0 }, { members: 2.5 }, { members: 2, replSet: false as const }])
      await expect(EmbeddedMongo.start(options)).rejects.toThrow(TypeError);
  });
});
