import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PATIENT, storeErrorCode, unhurried } from '#data/contracts';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { MongoRecordReader } from '../read/mongo-record-reader.js';
import { MongoSchemaCatalogue } from '../schema/mongo-schema-catalogue.js';
import { ConnectionStringError } from './connection-string.js';
import { MongoConnection } from './mongo-connection.js';

describe('a connection', PATIENT, () => {
  /** Accepts connections and never answers, as a database that hangs. */
  let silent: Server;
  let uri: string;
  let connection: MongoConnection;
  beforeEach(async () => {
    silent = createServer((socket) => socket.on('error', () => socket.destroy()));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    uri = `mongodb://127.0.0.1:${(silent.address() as AddressInfo).port}/?directConnection=true`;
    connection = new MongoConnection({ uri, database: 'x', timeout: 200 });
  });
  afterEach(async () => {
    await connection.close();
    silent.close();
  });

  it('calls a database that does not answer unavailable', async () => {
    const catalogue = new MongoSchemaCatalogue(connection);
    const reader = new MongoRecordReader(connection, catalogue);
    expect(await storeErrorCode(catalogue.snapshot())).toBe('unavailable');
    const count = reader.count({ className: 'Album', where: {} }, unhurried());
    expect(await storeErrorCode(count)).toBe('unavailable');
  });

  it('does not wait longer for a ping than its timeout', async () => {
    const patient = new MongoConnection({ uri, database: 'x', timeout: 60_000 });
    expect(await storeErrorCode(patient.ping(50))).toBe('unavailable');
    await patient.close();
  });

  it('finds a database that was away when it was first used, or hung', async () => {
    const before = await EmbeddedMongo.start();
    const { port } = before;
    await before.close();
    const early = new MongoConnection({
      uri: `mongodb://127.0.0.1:${port}/?directConnection=true`,
      database: 'x',
      timeout: 200,
    });
    const answers = () =>
      early.ping(1_000).then(
        () => true,
        () => false,
      );
    for (const operation of [1, 2, 3])
      expect([operation, await storeErrorCode(early.ping(1_000))]).toEqual([operation, 'unavailable']);
    const database = await EmbeddedMongo.start({ port });
    await database.pause();
    expect(await Promise.all([answers(), answers(), answers()])).toEqual([false, false, false]);
    await database.resume();
    await expect.poll(answers, { timeout: 20_000 }).toBe(true);
    await early.close();
    await database.close();
  });

  it('finds a database again that closed every connection while it was checked', async () => {
    const database = await EmbeddedMongo.start();
    const sockets = new Set<Socket>();
    let state: 'open' | 'closing' | 'away' = 'open';
    const front = createServer((socket) => {
      if (state === 'away') return socket.destroy();
      const behind = connect(Number(new URL(database.uri).port), '127.0.0.1');
      for (const one of [socket, behind]) {
        sockets.add(one);
        one.on('error', () => undefined).on('close', () => [socket, behind].map((end) => end.destroy()));
      }
      socket.on('data', (chunk) => behind.write(chunk));
      return behind.on('data', (chunk) => {
        if (state !== 'closing') return socket.write(chunk);
        state = 'away';
        for (const one of sockets) one.destroy();
        return false;
      });
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    const { port } = front.address() as AddressInfo;
    const cut = new MongoConnection({
      uri: `mongodb://127.0.0.1:${port}/?directConnection=true`,
      database: 'x',
      timeout: 500,
    });
    await cut.ping(5_000);
    // The next check begins immediately after the shortest interval between two checks.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    state = 'closing';
    expect(await storeErrorCode(cut.ping(5_000))).toBe('unavailable');
    state = 'open';
    await expect
      .poll(
        () =>
          cut.ping(1_000).then(
            () => true,
            () => false,
          ),
        { timeout: 20_000 },
      )
      .toBe(true);
    await cut.close();
    front.close();
    await database.close();
  });

  it('ends a write that the driver never settles, and does not know its outcome', async () => {
    const hanging = connection.sendWrite({ maxTimeMS: 50 }, () => new Promise<never>(() => undefined));
    await expect(hanging).rejects.toMatchObject({ code: 'timeout', outcome: 'unknown' });
  });

  it('never repeats a URI it cannot read', () => {
    const attempt = () => new MongoConnection({ uri: 'mongodb://user:hunter2@[bad', database: 'x' });
    expect(attempt).toThrow(ConnectionStringError);
    expect(attempt).not.toThrow(/hunter2/);
  });

  it('may be closed twice', async () => {
    await connection.close();
    await connection.close();
    expect(await storeErrorCode(connection.ping(100))).toBe('unavailable');
  });
});
