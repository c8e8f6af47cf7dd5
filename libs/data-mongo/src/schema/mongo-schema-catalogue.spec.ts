import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { MUSIC_SEED, PATIENT } from '#data-contracts';
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

  it('serves the old snapshot while it reads a new one', async () => {
    await catalogue.snapshot();
    await addClass('Later');
    clock = 999;
    expect(await knows('Later')).toBe(false);
    clock = 1001;
    expect(await knows('Later')).toBe(false);
    await vi.waitFor(async () => expect(await knows('Later')).toBe(true), { timeout: 30_000 });
  });

  it('does not serve what has been out of date for long', async () => {
    await catalogue.snapshot();
    await addClass('Later');
    clock = 10_001;
    expect(await knows('Later')).toBe(true);
  });

  it('sees a change at once when it is told of it', async () => {
    await catalogue.snapshot();
    await addClass('Later');
    catalogue.invalidate();
    expect(await knows('Later')).toBe(true);
  });

  it('does not keep a reading that began before it was told of a change', async () => {
    const early = catalogue.snapshot();
    await addClass('Later');
    catalogue.invalidate();
    await early;
    expect(await knows('Later')).toBe(true);
  });

  it('asks the collection for its indexes, and which of them are unique', async () => {
    await addClass('Bare');
    await store.connection
      .collection('Bare')
      .createIndex({ _created_at: 1, title: -1 }, { name: 'when', unique: true });
    await store.connection
      .collection('Bare')
      .createIndex({ title: 1 }, { name: 'some', unique: true, sparse: true });
    const indexes = (await catalogue.snapshot()).get('Bare')?.indexes;
    expect(indexes).toContainEqual({ name: 'some', fields: ['title'], unique: true, sparse: true });
    expect(indexes).toContainEqual({ name: 'when', fields: ['createdAt', 'title'], unique: true });
  });

  it('leaves out rows of types it does not know', async () => {
    await store.connection
      .collection('_SCHEMA')
      .insertOne({ _id: 'Odd', title: 'string', strange: 'quaternion', broken: 7 });
    const fields = (await catalogue.snapshot()).get('Odd')?.fields;
    expect([...(fields?.keys() ?? [])]).toEqual(['objectId', 'title', 'createdAt', 'updatedAt', 'ACL']);
  });
});
