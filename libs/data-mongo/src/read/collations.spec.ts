import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { unhurried } from '#data/contracts';
import { MongoPrincipalDirectory } from '../identity/mongo-principal-directory.js';
import type { DriverDocument } from '../connection/mongo-connection.js';
import { TestDatabase } from '../test-database.contract.js';

const FOLDING = { collation: { locale: 'en', strength: 1 } };
const TEXT = { type: 'String' } as const;
const declared = (className: string, collection: string) => ({
  className,
  collection,
  id: 'string' as const,
  timestamps: null,
  properties: new Map([
    ['shop', TEXT],
    ['name', TEXT],
  ]),
});

const CLASSES = [declared('Note', 'notes'), declared('Customer', 'customers'), declared('Seen', 'seen')];
const OURS = { shop: 'acme' };

describe('rows of a collection that compares texts by a collation', () => {
  let database: TestDatabase;
  let store: ReturnType<TestDatabase['openDeclared']>;
  beforeAll(async () => {
    database = await TestDatabase.start();
  });
  afterAll(() => database.stop());

  beforeEach(async () => {
    store = database.openDeclared({ parse: new Set(), plain: CLASSES });
    const { db } = store.connection;
    await db.createCollection<DriverDocument>('notes', FOLDING);
    await db.createCollection('customers');
    await db.createCollection('seen', { viewOn: 'notes', pipeline: [], ...FOLDING });
    for (const name of ['notes', 'customers'])
      await db.collection<DriverDocument>(name).insertMany([
        { _id: `${name}1`, shop: 'acme', name: 'ours' },
        { _id: `${name}2`, shop: 'ACME', name: 'of another shop' },
        { _id: `${name}3`, shop: 'àcme', name: 'of a third shop' },
      ]);
    await db.collection('notes').createIndex({ shop: 1, name: 1 }, { unique: true });
    await db.collection('notes').createIndex({ name: 1 }, { collation: { locale: 'simple' } });
  });

  const find = (where: Readonly<Record<string, unknown>>) =>
    store.reader.find({ className: 'Note', where, limit: 10 }, unhurried());

  it('are found, counted and grouped by the text that a constraint has', async () => {
    expect(await find(OURS)).toMatchObject([{ objectId: 'notes1' }]);
    expect(await store.reader.count({ className: 'Note', where: OURS }, unhurried())).toBe(1);
    const { rows } = await store.reader.aggregate(
      { className: 'Note', pipeline: [{ $match: OURS }, { $group: { _id: '$shop', count: { $sum: 1 } } }] },
      unhurried(),
    );
    expect(rows).toEqual([{ _id: 'acme', count: 1 }]);
  });

  it('bring rows of a joined collection by that text', async () => {
    const join = { from: 'Customer', localField: 'shop', foreignField: 'shop', as: 'customers' };
    const { rows } = await store.reader.aggregate(
      { className: 'Note', pipeline: [{ $match: OURS }, { $lookup: join }] },
      unhurried(),
    );
    expect(rows).toMatchObject([{ customers: [{ name: 'ours' }] }]);
  });

  it('have no id that is spelt otherwise', async () => {
    expect(await find({ objectId: 'NOTES1' })).toEqual([]);
    expect(await store.writer.update('Note', 'NOTES1', { name: 'x' }, {}, unhurried())).toBeNull();
    expect(await store.writer.delete('Note', 'NOTES1', {}, unhurried())).toBe(false);
  });

  it('are changed and deleted only where a constraint has their text', async () => {
    expect(await store.writer.update('Note', 'notes2', { name: 'x' }, OURS, unhurried())).toBeNull();
    expect(await store.writer.delete('Note', 'notes2', OURS, unhurried())).toBe(false);
    expect(await find({ shop: 'ACME' })).toMatchObject([{ name: 'of another shop' }]);
  });

  it('have indexes that are known to take texts for the same that differ', async () => {
    const schema = (await store.catalogue.snapshot()).get('Note');
    const indexes = schema ? await store.catalogue.listIndexes(schema) : [];
    expect(indexes.find(({ unique, name }) => unique && name !== '_id_')).toMatchObject({ collated: true });
    expect(indexes.find(({ fields }) => fields[0] === 'name')).not.toHaveProperty('collated');
  });

  it('are no class by a view, whose collation nobody can change', async () => {
    expect((await store.catalogue.snapshot()).get('Seen')).toBeUndefined();
    expect(await store.catalogue.problems()).toMatchObject([{ className: 'Seen', kind: 'collated_view' }]);
  });

  it('are the session of a token alone', async () => {
    const { db } = store.connection;
    await db.createCollection('_Session', FOLDING);
    await db.createCollection('_User', FOLDING);
    await db.collection<DriverDocument>('_User').insertOne({ _id: 'ada' });
    await db
      .collection<DriverDocument>('_Session')
      .insertOne({ _id: 's1', _session_token: 'r:abc', _p_user: '_User$ada' });
    const directory = new MongoPrincipalDirectory(store.connection);
    expect(await directory.ownerOfSession('r:abc')).toMatchObject({ userId: 'ada' });
    expect(await directory.ownerOfSession('R:ABC')).toBeNull();
  });
});
