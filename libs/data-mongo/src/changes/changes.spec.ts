import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChangeSet, ParseRow } from '#data';
import { changeSetsContract, MUSIC_SEED, rowTransactionsContract, unhurried } from '#data/contracts';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { TestDatabase } from '../test-database.contract.js';
import { CHANGES_COLLECTION, MongoChangeSets } from './mongo-change-sets.js';
import { MongoRowTransactions, type MongoTransaction } from './mongo-row-transactions.js';
import { SETTLED_COLLECTION } from './settled-sets.js';

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

rowTransactionsContract('MongoDB beside the first database', async (seed) => {
  const store = await database.openFurther(seed);
  return { ...store, transactions: new MongoRowTransactions(store.connection, store.catalogue) };
});

rowTransactionsContract('MongoDB in the database of a tenant', async (seed) => {
  const store = await database.openOfTenant(seed);
  return { ...store, transactions: new MongoRowTransactions(store.connection, store.catalogue) };
});

const title = 'Sent';
const row = { className: 'Album', objectId: 'a1', where: {} } as const;

describe('A write in a transaction', () => {
  it.each([
    ['a new row', { kind: 'create', className: 'Album', fields: { title } } as const, ['insert']],
    ['values', { kind: 'update', ...row, fields: { title } } as const, ['findAndModify']],
    [
      'what depends on the row',
      { kind: 'update', ...row, fields: { tags: { __op: 'Add', objects: ['x'] } } } as const,
      ['find', 'findAndModify'],
    ],
    ['no row any more', { kind: 'delete', ...row } as const, ['findAndModify']],
  ])('sends no more than it needs to know the row before and after: %s', async (_case, asked, commands) => {
    const store = await database.openMonitored(MUSIC_SEED);
    const transactions = new MongoRowTransactions(store.connection, store.catalogue);
    await store.catalogue.snapshot();
    const sent: string[] = [];
    store.connection.db.client.on('commandStarted', ({ commandName }) => sent.push(commandName));
    await transactions.run('Album', unhurried(), ({ writes }) => writes.run(asked, unhurried(), 'operator'));
    expect(sent.filter((name) => name !== 'endSessions')).toEqual([...commands, 'commitTransaction']);
    await store.close();
  });
});

describe('A column that a write in a transaction adds', () => {
  const spot = { __type: 'GeoPoint', latitude: 1, longitude: 2 };
  const fields = { unheard: 1, spot };
  const kinds = {
    'a new row': { kind: 'create', className: 'Album', fields: { title, ...fields } } as const,
    'a row': { kind: 'update', ...row, fields } as const,
  };

  async function open() {
    const store = await database.open(MUSIC_SEED);
    const transactions = new MongoRowTransactions(store.connection, store.catalogue);
    return { ...store, transactions };
  }

  const findTraces = async ({ connection, catalogue }: Awaited<ReturnType<TestDatabase['open']>>) => {
    const known = (await catalogue.snapshot()).get('Album')?.fields;
    const indexes = await connection.collection('Album').indexes();
    return {
      columns: Object.keys(fields).filter((name) => known?.has(name)),
      indexes: indexes.map(({ name }) => name).filter((name) => name?.startsWith('spot')),
    };
  };
  const NONE = { columns: [], indexes: [] };
  const ALL = { columns: ['unheard', 'spot'], indexes: ['spot_2dsphere'] };

  it.each(Object.entries(kinds))('is there no more once the transaction failed: %s', async (_case, asked) => {
    const store = await open();
    for (const which of ['writes', 'lastWrite'] as const) {
      const failed = store.transactions.run('Album', unhurried(), async (stores) => {
        await stores[which].run(asked, unhurried(), 'operator');
        throw new Error('no');
      });
      await expect(failed).rejects.toThrow('no');
      expect(await findTraces(store)).toEqual(NONE);
    }
    const absent = { ...kinds['a row'], objectId: 'none' };
    await store.transactions.run('Album', unhurried(), async ({ writes }) => {
      expect(await writes.run(absent, unhurried(), 'operator')).toBe(null);
    });
    expect(await store.writer.run(absent, unhurried(), 'operator')).toBe(null);
    expect(await findTraces(store)).toEqual(NONE);
    await store.close();
  });

  it.each(Object.entries(kinds))(
    'stays with its index, also where another writer was in the way: %s',
    async (_case, asked) => {
      const store = await open();
      const admin = store.connection.client.db('admin');
      const data = {
        failCommands: ['commitTransaction'],
        errorCode: 112,
        errorLabels: ['TransientTransactionError'],
      };
      await admin.command({ configureFailPoint: 'failCommand', mode: { times: 1 }, data });
      let tries = 0;
      await store.transactions.run('Album', unhurried(), ({ writes }) => {
        tries += 1;
        return writes.run(asked, unhurried(), 'operator');
      });
      expect(tries).toBe(2);
      expect(await findTraces(store)).toEqual(ALL);
      await store.close();
    },
  );

  it('gets its index with a write of its own, too', async () => {
    const store = await open();
    await store.writer.run(kinds['a row'], unhurried(), 'operator');
    expect(await findTraces(store)).toEqual(ALL);
    await store.close();
  });
});

describe('A new row that is recorded', () => {
  const times = { openedAt: 1, expiresAt: Date.now() + 60_000, deletedAt: Date.now() + 60_000 };
  const owner = { principal: 'ada', tenant: null, agent: 'support' };
  const set = {
    id: 's1',
    owner,
    kind: 'direct',
    state: 'applied',
    revision: 1,
    ...times,
    entries: [],
    next: 1,
  } as const;

  async function open(uriOptions = '') {
    const store = await database.openMonitored(MUSIC_SEED, uriOptions);
    const transactions = new MongoRowTransactions(store.connection, store.catalogue);
    const sets = new MongoChangeSets(store.connection);
    await sets.create({ ...set, id: 'earlier' });
    await store.catalogue.snapshot();
    const sent: string[] = [];
    const create = (objectId: string, fields: ParseRow = {}) =>
      transactions.run('Album', unhurried(), async ({ lastWrite, transaction }) => {
        const asked = {
          kind: 'create',
          className: 'Album',
          fields: { title: 'New', ...fields },
          objectId,
        } as const;
        await lastWrite.run(asked, unhurried(), 'operator');
        await sets.create({ ...set, id: `of ${objectId}` }, transaction);
      });
    store.connection.db.client.on('commandStarted', ({ commandName }) => sent.push(commandName));
    const listSent = () => sent.splice(0).filter((name) => name !== 'endSessions');
    return { ...store, transactions, sets, create, listSent };
  }

  it('is sent with its record once it is known that the server takes both in one command', async () => {
    const { transactions, sets, create, listSent, close } = await open();
    await create('n1');
    expect(listSent()).toEqual(['insert', 'insert', 'commitTransaction']);
    await transactions.findObstacle('Album', unhurried());
    listSent();
    await create('n2');
    expect(listSent()).toEqual(['bulkWrite', 'commitTransaction']);
    expect(await sets.find('of n2')).toMatchObject({ kind: 'direct' });
    await close();
  });

  /** Fails the next commands that insert into several collections. */
  async function failNext(times: number, data: object) {
    const admin = new MongoClient(database.uri);
    const failed = { failCommands: ['bulkWrite'], ...data };
    await admin.db('admin').command({ configureFailPoint: 'failCommand', mode: { times }, data: failed });
    await admin.close();
  }

  it.each([
    [
      'again where another writer was in its way',
      { errorCode: 112, errorLabels: ['TransientTransactionError'] },
      'bulkWrite',
    ],
    ['in two commands where the server does not know the one', { errorCode: 59 }, 'insert'],
    ['in two commands while the data is of an older version', { errorCode: 115 }, 'insert'],
  ])('is sent %s', async (_case, failure, then) => {
    const { transactions, sets, create, listSent, close } = await open();
    await transactions.findObstacle('Album', unhurried());
    listSent();
    await failNext(1, failure);
    await create('n1');
    const [first, ...others] = listSent().filter((name) => name !== 'abortTransaction');
    expect(first).toBe('bulkWrite');
    expect(new Set(others)).toEqual(new Set([then, 'commitTransaction']));
    expect(await sets.find('of n1')).toMatchObject({ kind: 'direct' });
    await close();
  });

  it('names why it failed as any other write does', async () => {
    const { transactions, create, close } = await open();
    await transactions.findObstacle('Album', unhurried());
    await failNext(1, { errorCode: 50 });
    await expect(create('n1')).rejects.toMatchObject({ name: 'StoreError', code: 'timeout' });
    await close();
  });

  it('is written by a client that acknowledges nothing else', async () => {
    const { transactions, sets, create, close } = await open('&w=0');
    await transactions.findObstacle('Album', unhurried());
    await create('n1');
    expect(await sets.find('of n1')).toMatchObject({ kind: 'direct' });
    await close();
  });

  it('leaves no record and no column when its id is taken, and says so', async () => {
    const { transactions, sets, create, reader, catalogue, close } = await open();
    await transactions.findObstacle('Album', unhurried());
    for (const fields of [{}, { unheard: 1 }])
      await expect(create('a1', fields)).rejects.toMatchObject({ code: 'duplicate' });
    expect(await sets.find('of a1')).toBe(null);
    expect((await catalogue.snapshot()).get('Album')?.fields.has('unheard')).toBe(false);
    const [row] = await reader.find({ className: 'Album', where: { objectId: 'a1' }, limit: 1 }, unhurried());
    expect(row?.['title']).not.toBe('New');
    await close();
  });
});

describe('Sets of rows in a database beside that of the sets', () => {
  const owner = { principal: 'ada', tenant: null, agent: 'support' };
  const times = () => ({ openedAt: 1, expiresAt: Date.now() + 60_000, deletedAt: Date.now() + 60_000 });
  const made = (id: string, more: Partial<ChangeSet> = {}): ChangeSet => ({
    id,
    owner,
    kind: 'proposed',
    state: 'submitted',
    revision: 1,
    ...times(),
    entries: [],
    next: 1,
    ...more,
  });

  async function open() {
    const store = await database.openFurther(MUSIC_SEED);
    const sets = new MongoChangeSets(store.connection);
    const transactions = new MongoRowTransactions(store.connection, store.catalogue);
    await sets.create(made('s1'));
    const beside = store.connection.further.get('crm') as MongoConnection;
    return { ...store, sets, transactions, settled: beside.collection(SETTLED_COLLECTION) };
  }

  it('change when the transaction of the rows is committed, or not at all', async () => {
    const { sets, transactions, settled, close } = await open();
    const failed = transactions.run('Album', unhurried(), async ({ transaction }) => {
      expect(await sets.change('s1', 1, { state: 'applied' }, transaction)).toBe(true);
      // Nobody may decide otherwise while the transaction is open.
      expect(await sets.change('s1', 1, { state: 'discarded' })).toBe(false);
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await sets.find('s1')).toMatchObject({ state: 'submitted', revision: 1 });
    await transactions.run('Album', unhurried(), async ({ transaction }) => {
      await sets.change('s1', 1, { state: 'applied' }, transaction);
      await sets.create(made('s2', { kind: 'direct', state: 'applied' }), transaction);
      expect(await sets.find('s1')).toMatchObject({ state: 'submitted' });
      expect(await sets.find('s2')).toBe(null);
    });
    expect(await sets.find('s1')).toMatchObject({ state: 'applied', revision: 2 });
    expect(await sets.find('s2')).toMatchObject({ kind: 'direct' });
    expect(await settled.countDocuments({})).toBe(0);
    await close();
  });

  it('learn what became of them after the process ended between the two', async () => {
    const { connection, sets, transactions, settled, close } = await open();
    const change = { state: 'applied', appliedAt: 5 } as const;
    await transactions.run('Album', unhurried(), async ({ transaction }) => {
      await sets.change('s1', 1, change, transaction);
      await sets.create(made('s2', { kind: 'direct', state: 'applied' }), transaction);
      // What follows the commit never happens.
      (transaction as MongoTransaction).committed.length = 0;
    });
    expect(await settled.countDocuments({})).toBe(2);
    const restarted = new MongoChangeSets(connection);
    expect(await restarted.change('s1', 1, { state: 'discarded' })).toBe(false);
    expect(await restarted.find('s1')).toMatchObject({ state: 'applied', appliedAt: 5, revision: 2 });
    // The next one that is applied there brings the others.
    await transactions.run('Album', unhurried(), ({ transaction }) =>
      restarted.create(made('s3', { kind: 'direct', state: 'applied' }), transaction),
    );
    expect(await restarted.find('s2')).toMatchObject({ kind: 'direct' });
    expect(await settled.countDocuments({})).toBe(0);
    await close();
  });

  it('change rows of no other database', async () => {
    const { transactions, close } = await open();
    const failed = transactions.run('Album', unhurried(), ({ writes }) =>
      writes.run({ kind: 'create', className: '_Role', fields: { name: 'x' } }, unhurried(), 'operator'),
    );
    await expect(failed).rejects.toMatchObject({ code: 'unsupported' });
    await close();
  });
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
    const failed = transactions.run('Album', unhurried(), async ({ transaction }) => {
      expect(await sets.change('s1', 1, { state: 'applied' }, transaction)).toBe(true);
      expect(await sets.find('s1')).toMatchObject({ state: 'submitted' });
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await sets.find('s1')).toMatchObject({ state: 'submitted', revision: 1 });
    await transactions.run('Album', unhurried(), ({ transaction }) =>
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
