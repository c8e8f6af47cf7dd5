import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeSetsContract, MUSIC_SEED, rowTransactionsContract, unhurried } from '#data/contracts';
import { TestDatabase } from '../test-database.contract.js';
import { CHANGES_COLLECTION, MongoChangeSets } from './mongo-change-sets.js';
import { MongoRowTransactions } from './mongo-row-transactions.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await TestDatabase.start();
});
afterAll(() => database.stop());

changeSetsContract('MongoDB', async () => {
  const store = await database.open(MUSIC_SEED);
  return { sets: new MongoChangeSets(store.connection), close: store.close };
});

rowTransactionsContract('MongoDB', async (seed) => {
  const store = await database.open(seed);
  return { ...store, transactions: new MongoRowTransactions(store.connection, store.catalogue) };
});

rowTransactionsContract('MongoDB in collections of another program', async (seed) => {
  const store = await database.openPlain(seed);
  return { ...store, transactions: new MongoRowTransactions(store.connection, store.catalogue) };
});

describe('Sets beside rows', () => {
  it('change in the transaction of the rows, or not at all', async () => {
    const store = await database.open(MUSIC_SEED);
    const sets = new MongoChangeSets(store.connection);
    const transactions = new MongoRowTransactions(store.connection, store.catalogue);
    const owner = { principal: 'ada', tenant: null, agent: 'support' };
    const times = { openedAt: 1, expiresAt: Date.now() + 60_000, deletedAt: Date.now() + 60_000 };
    const set = { id: 's1', owner, kind: 'proposed', state: 'submitted', revision: 1, ...times } as const;
    await sets.create({ ...set, entries: [], next: 1 });
    const failed = transactions.run(unhurried(), async ({ transaction }) => {
      expect(await sets.change('s1', 1, { state: 'applied' }, transaction)).toBe(true);
      expect(await sets.find('s1')).toMatchObject({ state: 'submitted' });
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await sets.find('s1')).toMatchObject({ state: 'submitted', revision: 1 });
    await transactions.run(unhurried(), ({ transaction }) =>
      sets.change('s1', 1, { state: 'applied' }, transaction),
    );
    expect(await sets.find('s1')).toMatchObject({ state: 'applied', revision: 2 });
    await store.close();
  });

  it('lie in a collection that is no class', async () => {
    const store = await database.open(MUSIC_SEED);
    const sets = new MongoChangeSets(store.connection);
    const owner = { principal: 'ada', tenant: null, agent: 'support' };
    const times = { openedAt: 1, expiresAt: Date.now() + 60_000, deletedAt: Date.now() + 60_000 };
    await sets.create({
      id: 's1',
      owner,
      kind: 'proposed',
      state: 'open',
      revision: 1,
      ...times,
      entries: [],
      next: 1,
    });
    store.catalogue.invalidate();
    const names = (await store.catalogue.snapshot()).classNames();
    expect(names).not.toContain(CHANGES_COLLECTION);
    await store.close();
  });
});
