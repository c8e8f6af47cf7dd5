import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MUSIC_SEED, PATIENT } from '#data/contracts';
import { TestDatabase } from '../test-database.contract.js';
import { MongoSchemaCatalogue } from './mongo-schema-catalogue.js';

describe('the schema catalogue of MongoDB', PATIENT, () => {
  let database: TestDatabase;
  let store: Awaited<ReturnType<TestDatabase['open']>>;
  let clock: number;
  let catalogue: MongoSchemaCatalogue;
  beforeAll(async () => {
    database = await TestDatabase.start();
  });
  afterAll(() => database.stop());
  beforeEach(async () => {
    store = await database.open(MUSIC_SEED);
    clock = 0;
    catalogue = new MongoSchemaCatalogue(store.connection, { maxAge: 1000, now: () => clock });
  });
  afterEach(() => store.close());

  const addClass = (className: string) =>
    store.connection.collection('_SCHEMA').insertOne({ _id: className, objectId: 'string', title: 'string' });
  const knows = async (className: string) => (await catalogue.snapshot()).get(className) !== undefined;

  it('reads once for many who ask at the same time', async () => {
    const snapshots = await Promise.all(Array.from({ length: 20 }, () => catalogue.snapshot()));
    expect(new Set(snapshots).size).toBe(1);
  });

  const refuseReads = (times: number) =>
    store.connection.db.admin().command({
      configureFailPoint: 'failCommand',
      mode: { times },
      data: { failCommands: ['find'], errorCode: 13 },
    });

  it('knows at the first question after a pause what was changed in it', async () => {
    await catalogue.snapshot();
    await addClass('Later');
    clock = 999;
    expect(catalogue.snapshotNow()).not.toBeNull();
    clock = 75_000;
    expect(await knows('Later')).toBe(true);
  });

  it('refuses rather than decide by permissions past their age', async () => {
    await catalogue.snapshot();
    clock = 1000;
    await refuseReads(1);
    await expect(catalogue.snapshot()).rejects.toMatchObject({ code: 'failed' });
    expect((await catalogue.snapshot()).get('Album')).toBeDefined();
  });

  it('finds a class that is younger than its snapshot when somebody asks for it', async () => {
    const known = await catalogue.snapshot();
    await addClass('Later');
    expect((await catalogue.lookAgain(known)).get('Later')).toBeDefined();
  });

  it('sees a change at once when it is notified of it', async () => {
    await catalogue.snapshot();
    await addClass('Later');
    catalogue.invalidate();
    expect(await knows('Later')).toBe(true);
  });

  it('does not keep a reading that began before it was notified of a change', async () => {
    const early = catalogue.snapshot();
    await addClass('Later');
    catalogue.invalidate();
    await early;
    expect(await knows('Later')).toBe(true);
  });

  describe('on indexes', () => {
    let commands: string[];
    beforeEach(async () => {
      await store.close();
      store = await database.openMonitored(MUSIC_SEED);
      catalogue = new MongoSchemaCatalogue(store.connection, { maxAge: 1000, now: () => clock });
      commands = [];
      store.connection.db.client.on('commandStarted', ({ commandName, command }) =>
        commands.push(`${commandName} ${String(command[commandName])}`),
      );
    });

    const listIndexes = async (className: string) => {
      const schema = (await catalogue.snapshot()).get(className);
      return schema ? catalogue.listIndexes(schema) : [];
    };

    it('reads all classes with one command, and asks for the indexes of those that somebody asks about', async () => {
      await store.connection
        .collection('_SCHEMA')
        .insertMany(Array.from({ length: 1000 }, (_, index) => ({ _id: `Many${index}`, title: 'string' })));
      commands.length = 0;
      await catalogue.snapshot();
      expect(commands).toEqual(['find _SCHEMA']);
      await Promise.all(['Album', 'Album', '_User'].map(listIndexes));
      await listIndexes('Album');
      expect(commands).toEqual(['find _SCHEMA', 'listIndexes Album', 'listIndexes _User']);
    });

    it('asks again once classes are read again, so that a new index is not overlooked', async () => {
      expect(await listIndexes('Album')).not.toContainEqual(expect.objectContaining({ name: 'late' }));
      await store.connection
        .collection('Album')
        .createIndex({ title: 1 }, { name: 'late', unique: true, sparse: true });
      catalogue.invalidate();
      const late = { name: 'late', fields: ['title'], unique: true, sparse: true };
      expect(await listIndexes('Album')).toContainEqual(late);
    });

    it('lists those that the schema row does not, and which are unique', async () => {
      await addClass('Bare');
      const bare = store.connection.collection('Bare');
      await bare.createIndex({ _created_at: 1, title: -1 }, { name: 'when', unique: true });
      await bare.createIndex(
        { title: 1 },
        { name: 'some', unique: true, partialFilterExpression: { title: { $gt: 'm' } } },
      );
      const indexes = await listIndexes('Bare');
      expect(indexes).toContainEqual({ name: 'some', fields: ['title'], unique: true, partial: true });
      expect(indexes).toContainEqual({ name: 'when', fields: ['createdAt', 'title'], unique: true });
    });

    it('finds none of a class without rows', async () => {
      await addClass('Empty');
      expect(await listIndexes('Empty')).toEqual([]);
    });

    it('fails rather than leave one out, and asks again the next time', async () => {
      await store.connection.db.admin().command({
        configureFailPoint: 'failCommand',
        mode: { times: 1 },
        data: { failCommands: ['listIndexes'], errorCode: 13 },
      });
      await expect(listIndexes('Album')).rejects.toMatchObject({ code: 'failed' });
      expect(await listIndexes('Album')).not.toEqual([]);
    });
  });

  it('leaves out rows of types it does not know', async () => {
    await store.connection
      .collection('_SCHEMA')
      .insertOne({ _id: 'Odd', title: 'string', strange: 'quaternion', broken: 7 });
    const fields = (await catalogue.snapshot()).get('Odd')?.fields;
    expect([...(fields?.keys() ?? [])]).toEqual(['objectId', 'title', 'createdAt', 'updatedAt', 'ACL']);
  });
});
