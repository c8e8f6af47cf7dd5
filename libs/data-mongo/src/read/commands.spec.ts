import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MUSIC_SEED, PATIENT, storeErrorCode, unhurried } from '#data/contracts';
import { TestDatabase } from '../test-database.contract.js';

/** The parts of a command that the database receives. */
interface SentCommand {
  readonly name: string;
  readonly maxTimeMS: unknown;
  readonly comment: unknown;
}

describe('commands to the database', PATIENT, () => {
  let database: TestDatabase;
  let store: Awaited<ReturnType<TestDatabase['open']>>;
  let admin: MongoClient;
  let sent: SentCommand[];
  beforeAll(async () => {
    database = await TestDatabase.start();
    store = await database.openMonitored(MUSIC_SEED);
    admin = new MongoClient(database.uri);
    await store.catalogue.snapshot();
    sent = [];
    store.connection.db.client.on('commandStarted', ({ commandName: name, command }) =>
      sent.push({ name, maxTimeMS: command.maxTimeMS, comment: command.comment }),
    );
  });
  afterAll(async () => {
    await admin.close();
    await store.close();
    await database.stop();
  });

  const limits = unhurried({ maxTimeMS: 4321, comment: 'query_class c-1' });
  const during = async (work: () => Promise<unknown>): Promise<SentCommand[]> => {
    sent.length = 0;
    await work();
    return [...sent];
  };
  const include = [
    {
      field: 'artist',
      targetClass: 'Artist',
      where: {},
      include: [{ field: 'label', targetClass: 'Label', where: {}, include: [] }],
    },
  ];

  const operations: [string, string, () => Promise<unknown>][] = [
    ['a find', 'find', () => store.reader.find({ className: 'Album', where: {}, limit: 3 }, limits)],
    [
      'a find of exactly as many rows as there are',
      'find',
      () => store.reader.find({ className: 'Album', where: {}, limit: 6 }, limits),
    ],
    [
      'a find with nested includes',
      'aggregate',
      () => store.reader.find({ className: 'Album', where: {}, limit: 6, include }, limits),
    ],
    ['a count', 'aggregate', () => store.reader.count({ className: 'Album', where: { price: 8 } }, limits)],
    [
      'an aggregation',
      'aggregate',
      () =>
        store.reader.aggregate({ className: 'Album', pipeline: [{ $group: { _id: '$artist' } }] }, limits),
    ],
    [
      'an explanation',
      'explain',
      () => store.reader.explain({ className: 'Album', where: { price: 8 } }, limits),
    ],
    ['a creation', 'insert', () => store.writer.create('Label', { name: 'x' }, limits)],
    ['an update', 'findAndModify', () => store.writer.update('Label', 'north', { name: 'y' }, {}, limits)],
    ['a deletion', 'delete', () => store.writer.delete('Label', 'gone', {}, limits)],
  ];
  it.each(operations)('%s is one command with its deadline and its comment', async (_title, name, work) => {
    expect(await during(work)).toEqual([{ name, maxTimeMS: 4321, comment: 'query_class c-1' }]);
  });

  it('an included array costs one command more', async () => {
    const guests = [{ field: 'guests', targetClass: 'Artist', where: {}, include: [] }];
    const work = () =>
      store.reader.find({ className: 'Album', where: {}, limit: 6, include: guests }, limits);
    expect((await during(work)).map((command) => command.name)).toEqual(['find', 'find']);
  });

  it('asks for no row when none is wanted', async () => {
    expect(
      await during(() => store.reader.find({ className: 'Album', where: {}, limit: 0 }, limits)),
    ).toEqual([]);
  });

  const failNext = (data: object) =>
    admin.db('admin').command({ configureFailPoint: 'failCommand', mode: { times: 1 }, data });

  it.skipIf(process.env['MONGODB_URI'])('gives the database back its deadline as a timeout', async () => {
    await failNext({ failCommands: ['aggregate'], errorCode: 50 });
    const count = store.reader.count({ className: 'Album', where: {} }, limits);
    expect(await storeErrorCode(count)).toBe('timeout');
  });

  it.skipIf(process.env['MONGODB_URI'])('stops waiting when the caller does', async () => {
    await failNext({ failCommands: ['find'], blockConnection: true, blockTimeMS: 90_000 });
    const caller = new AbortController();
    const find = store.reader.find(
      { className: 'Album', where: {}, limit: 1 },
      unhurried({ signal: caller.signal }),
    );
    setTimeout(() => caller.abort(), 20);
    expect(await storeErrorCode(find)).toBe('cancelled');
  });
});
