import { readFileSync, statSync } from 'node:fs';
import { compareSync } from 'bcryptjs';
import { Decimal128, ObjectId } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MUSIC_SEED, PATIENT, storeErrorCode, unhurried } from '#data/contracts';
import { TestDatabase } from '../test-database.contract.js';
import { loadSeed, seedCollections } from './load-seed.js';
import { parseSeed } from './parse-seed.js';
import type { Seed } from './seed.js';

const DEMO = new URL('../../../../demo/seed.json', import.meta.url);
const demo = (): unknown => JSON.parse(readFileSync(DEMO, 'utf8'));

describe('loading a seed', PATIENT, () => {
  let database: TestDatabase;
  let store: Awaited<ReturnType<TestDatabase['open']>>;
  beforeAll(async () => {
    database = await TestDatabase.start();
  });
  afterAll(() => database.stop());
  beforeEach(async () => {
    store = await database.open({});
  });
  afterEach(() => store.close());

  it('leaves a database alone that has a schema', async () => {
    expect(await loadSeed(store.connection, parseSeed(MUSIC_SEED))).toEqual({ loaded: false, rows: 0 });
    expect(await store.reader.count({ className: 'Album', where: {} }, unhurried())).toBe(0);
  });

  it('stores the documents of collections as they are, and makes no classes of Parse for them alone', async () => {
    const seed = parseSeed({
      collections: {
        repairs: [{ _id: { $oid: '65a0000000000000000000aa' }, cost: { $numberDecimal: '1.10' } }],
      },
    });
    expect(seed.classes).toEqual([]);
    expect(await loadSeed(store.connection, seed, { onlyIfEmpty: false })).toEqual({ loaded: true, rows: 1 });
    expect(await store.connection.collection('repairs').find().toArray()).toEqual([
      { _id: new ObjectId('65a0000000000000000000aa'), cost: Decimal128.fromString('1.10') },
    ]);
    expect(await loadSeed(store.connection, seed)).toEqual({ loaded: false, rows: 0 });
  });

  it('makes the indexes it was given and those Parse relies on', async () => {
    const names = async (className: string) =>
      (await store.connection.collection(className).indexes()).map((index) => index.name);
    const other = await database.open(MUSIC_SEED);
    const albums = (await other.connection.collection('Album').indexes()).map((index) => index.key);
    expect(albums).toContainEqual({ _p_artist: 1, released: -1 });
    await other.close();
    expect(await names('_User')).toEqual(expect.arrayContaining(['username_1', 'email_1']));
    expect(await names('_Role')).toContain('name_1');
  });

  it('reports that its rows exist already', async () => {
    const seed = parseSeed({ objects: { Note: [{ objectId: 'n1' }] } });
    await loadSeed(store.connection, seed, { onlyIfEmpty: false }).catch(() => undefined);
    const again = loadSeed(store.connection, seed, { onlyIfEmpty: false });
    expect(await storeErrorCode(again)).toBe('duplicate');
  });

  it('relates two rows once, however often the seed says it', async () => {
    const relation = {
      __op: 'AddRelation',
      objects: ['l1', 'l1'].map((objectId) => ({ __type: 'Pointer', className: 'Label', objectId })),
    };
    const other = await database.open({
      schemas: [
        { className: 'Label', fields: {} },
        { className: 'Note', fields: { labels: { type: 'Relation', targetClass: 'Label' } } },
      ],
      users: [{ objectId: 'ada', username: 'ada' }],
      roles: [{ name: 'staff', users: ['ada', 'ada'] }],
      objects: { Label: [{ objectId: 'l1' }], Note: [{ objectId: 'n1', labels: relation }] },
    });
    for (const name of ['_Join:labels:Note', '_Join:users:_Role'])
      expect(await other.connection.collection(name).countDocuments()).toBe(1);
    await other.close();
  });

  it('serves the demo shop whole', async () => {
    const shop = await database.open(demo());
    const count = (className: string) => shop.reader.count({ className, where: {} }, unhurried());
    expect(await Promise.all(['Artist', 'Album', 'Order', 'SupplierContract', '_User'].map(count))).toEqual([
      60, 150, 480, 12, 8,
    ]);
    await shop.close();
  });
});

describe('the demo seed', PATIENT, () => {
  let seed: Seed;
  beforeAll(() => {
    seed = parseSeed(demo());
  });

  it('is small enough to ship', () => {
    expect(statSync(DEMO).size).toBeLessThan(1_500_000);
  });

  it('points at rows that exist', () => {
    const ids = new Map(
      [...seed.objects].map(([className, rows]) => [className, new Set(rows.map((row) => row['objectId']))]),
    );
    ids.set('_User', new Set(seed.users.map((user) => user.objectId)));
    const dangling: unknown[] = [];
    JSON.stringify([...seed.objects.values()], (_key, value: unknown) => {
      const pointer = value as { __type?: unknown; className?: string; objectId?: string } | null;
      if (pointer?.__type === 'Pointer' && !ids.get(String(pointer.className))?.has(pointer.objectId))
        dangling.push(value);
      return value;
    });
    expect(dangling).toEqual([]);
  });

  it('names only made-up mail addresses and one known password', async () => {
    const { collections } = await seedCollections(seed, new Date());
    const users = collections.find(({ name }) => name === '_User')?.documents ?? [];
    expect(compareSync('demo-password', users[0]?.['_hashed_password'])).toBe(true);
    const text = readFileSync(DEMO, 'utf8');
    const addresses = text.match(/[\w.+-]+@[\w.-]+/g) ?? [];
    expect(addresses.length).toBeGreaterThan(200);
    expect(addresses.filter((address) => !address.endsWith('@example.com'))).toEqual([]);
  });

  it('gives every ACL to users and roles of the seed', () => {
    const known = new Set([
      '*',
      ...seed.users.map((user) => user.objectId),
      ...seed.roles.map((role) => `role:${role.name}`),
    ]);
    const principals = new Set(
      [...seed.objects.values()].flat().flatMap((row) => Object.keys(row['ACL'] ?? {})),
    );
    expect([...principals].filter((principal) => !known.has(principal))).toEqual([]);
  });
});
