import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AgentDefinitionOptions, Refused } from '#core';
import { ConflictingChanges, RecordedWrites, WriteRecorder, type WriteStore } from '#data';
import { PATIENT } from '#data/contracts';
import { HeldSet, openChanges } from '../changes/governed-changes.fixture.js';
import { MongoRowTransactions } from '../changes/mongo-row-transactions.js';
import { TestDatabase } from '../test-database.contract.js';

const text = { type: 'String' };
const SEED = {
  schemas: [
    { className: 'Order', fields: { state: text, total: { type: 'Number' }, number: text, orgId: text } },
  ],
  objects: {
    Order: [
      { objectId: 'o1', state: 'paid', total: 10, number: 'n1', orgId: 'north' },
      { objectId: 'o2', state: 'open', total: 20, number: 'n2', orgId: 'north' },
    ],
  },
};
const NORTH: AgentDefinitionOptions = { tenantId: 'north', writes: 'direct' };

type Store = Awaited<ReturnType<TestDatabase['open']>>;

class NoRecords extends WriteRecorder {
  record(): Promise<void> {
    return Promise.resolve();
  }
}

const STORAGES = {
  Parse: {
    open: (database: TestDatabase): Promise<Store> => database.open(SEED),
    collection: 'Order',
    policy: { classes: { Order: { tenantScope: { field: 'orgId' } } } },
    toColumn: (field: string) => field,
  },
  'another program': {
    open: (database: TestDatabase): Promise<Store> => database.openPlain(SEED),
    collection: 'order_rows',
    policy: {
      classes: {
        Order: { storage: 'plain', collection: 'order_rows', tenantScope: { field: 'orgId' } },
      },
    },
    toColumn: (field: string) => `${field}_column`,
  },
};
const WRITERS = {
  'at once': ({ writer }: Store): WriteStore => writer,
  'at once, and recorded': ({ writer, connection, catalogue }: Store): WriteStore =>
    new RecordedWrites(writer, new MongoRowTransactions(connection, catalogue), new NoRecords()),
};

let database: TestDatabase;
beforeAll(async () => {
  database = await TestDatabase.start();
});
afterAll(() => database.stop());

it('The condition that keeps rows of several tenants out is asked of the row that the id names alone', async () => {
  const { policy } = STORAGES.Parse;
  const store = await database.openMonitored(SEED);
  const { db } = store.connection;
  await db.collection('Order').createIndex({ orgId: 1 });
  const conditions: unknown[] = [];
  db.client.on('commandStarted', ({ command: { query, deletes } }) =>
    conditions.push(query ?? (deletes as { q: unknown }[] | undefined)?.[0]?.q),
  );
  const writes = (await openChanges(store, policy)).writesOf(NORTH);
  await writes.update('Order', 'o1', { state: 'sent' });
  await writes.delete('Order', 'o1');
  const sent = conditions.filter((filter) => JSON.stringify(filter)?.includes('"array"'));
  expect(sent).toHaveLength(2);
  for (const filter of sent) {
    const { queryPlanner } = await db.command({ explain: { find: 'Order', filter } });
    expect(JSON.stringify(queryPlanner.winningPlan)).toContain('"indexName":"_id_"');
  }
  await store.close();
});

const messageOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: unknown) => (error instanceof Refused ? error.refusal.message : String(error)),
  );

describe.each(Object.entries(STORAGES))('A row of several tenants in a class of %s', (_name, storage) => {
  const { collection, policy, toColumn } = storage;
  let store: Store;
  const rows = () => store.connection.collection(collection);
  const share = (id: string) =>
    rows().updateOne({ _id: id }, { $set: { [toColumn('orgId')]: ['north', 'south'] } });
  const dump = async () => JSON.stringify(await rows().find({}).sort({ _id: 1 }).toArray());
  beforeEach(async () => {
    store = await storage.open(database);
    await rows().createIndex(
      { [toColumn('number')]: 1 },
      { unique: true, sparse: true, collation: { locale: 'simple' } },
    );
    // Another program stores numbers of this row as text.
    await rows().updateOne({ _id: 'o2' }, { $set: { [toColumn('total')]: '20' } });
    await share('o2');
  }, PATIENT.timeout);
  afterEach(() => store.close());

  describe.each(Object.entries(WRITERS))('that is written %s', (_how, toWriter) => {
    it.each([
      ['a value that is taken', { number: 'n1' }],
      ['a value that does not fit what is stored', { total: { __op: 'Increment', amount: 1 } }],
      ['a value', { state: 'lost' }],
      ['nothing any more', null],
    ])('is answered as one that does not exist: %s', async (_case, fields) => {
      const writes = (await openChanges(store, policy, toWriter(store))).writesOf(NORTH);
      const write = (id: string) =>
        messageOf(fields ? writes.update('Order', id, fields) : writes.delete('Order', id));
      const before = await dump();
      expect(await write('o2')).toBe((await write('none')).replaceAll('none', 'o2'));
      expect(await write('o2')).toContain('o2');
      expect(await dump()).toBe(before);
    });
  });

  it.each([['a value', { state: 'lost' }] as const, ['nothing any more', null] as const])(
    'stays as it is where it was of one tenant when it was looked at: %s',
    async (_case, fields) => {
      const run = store.writer.run.bind(store.writer) as (...parts: unknown[]) => Promise<unknown>;
      const late = async (...parts: unknown[]) => {
        await share('o1');
        return run(...parts);
      };
      const between = Object.create(store.writer, { run: { value: late } }) as WriteStore;
      const writes = (await openChanges(store, policy, between)).writesOf(NORTH);
      const write = fields ? writes.update('Order', 'o1', fields) : writes.delete('Order', 'o1');
      expect(await messageOf(write)).toContain('o1');
      expect(await rows().findOne({ _id: 'o1' })).toMatchObject({ [toColumn('state')]: 'paid' });
    },
  );

  it('is proposed, applied and taken back for none of them', async () => {
    const opened = await openChanges(store, policy);
    const governed = await opened.open({ tenantId: 'north' });
    const update = (objectId: string) =>
      ({ operation: 'update', className: 'Order', objectId, fields: { state: 'lost' } }) as const;
    expect(await messageOf(new HeldSet().propose(governed, update('o2')))).toContain('o2');
    const set = new HeldSet();
    await set.propose(governed, update('o1'));
    const applied = await set.apply(governed);
    const later = new HeldSet();
    await later.propose(governed, { ...update('o1'), fields: { state: 'sent' } });
    await share('o1');
    const before = await dump();
    await expect(later.apply(governed)).rejects.toBeInstanceOf(ConflictingChanges);
    const { changes, conflicts } = await governed.invert(applied);
    expect({ changes, conflicts }).toMatchObject({ changes: [], conflicts: [{ objectId: 'o1' }] });
    expect(await dump()).toBe(before);
  });
});
