import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AgentDefinitionOptions, Refused } from '#core';
import { type AppliedChange, ConflictingChanges, RecordedWrites, WriteRecorder } from '#data';
import { PATIENT, unhurried } from '#data/contracts';
import { TestDatabase } from '../test-database.contract.js';
import { HeldSet, openChanges } from './governed-changes.fixture.js';
import { MongoRowTransactions } from './mongo-row-transactions.js';

const SEED = {
  schemas: [
    {
      className: 'Order',
      fields: {
        state: { type: 'String' },
        total: { type: 'Number' },
        note: { type: 'String' },
        number: { type: 'String' },
        orgId: { type: 'String' },
      },
    },
    { className: 'Customer', fields: { name: { type: 'String' }, orgId: { type: 'String' } } },
  ],
  objects: {
    Order: [
      { objectId: 'o1', state: 'paid', total: 10, note: 'of north', number: 'n1', orgId: 'north' },
      { objectId: 'o2', state: 'open', total: 20, note: 'of north', number: 'n2', orgId: 'north' },
      { objectId: 'o3', state: 'open', total: 30, note: 'of south', number: 'n3', orgId: 'south' },
    ],
    Customer: [{ objectId: 'c1', name: 'Ada', orgId: 'north' }],
  },
};
const POLICY = {
  classes: {
    Order: { tenantScope: { field: 'orgId' }, masks: { note: 'mask' } },
    Customer: { tenantScope: { field: 'orgId' } },
  },
};

const NORTH: AgentDefinitionOptions = { tenantId: 'north' };
const SOUTH: AgentDefinitionOptions = { tenantId: 'south' };

type Opened = Awaited<ReturnType<typeof openChanges>>;

describe('Governed changes', PATIENT, () => {
  let database: TestDatabase;
  let store: Awaited<ReturnType<TestDatabase['open']>>;
  let opened: Opened;
  beforeAll(async () => {
    database = await TestDatabase.start();
  });
  afterAll(() => database.stop());
  beforeEach(async () => {
    store = await database.open(SEED);
    await store.connection.collection('Order').createIndex({ number: 1 }, { unique: true, sparse: true });
    opened = await openChanges(store, POLICY);
  });
  afterEach(() => store.close());

  const orders = () => store.connection.collection('Order');
  const stateOf = async (id: string) => (await orders().findOne({ _id: id }))?.['state'] as unknown;
  const update = (objectId: string, fields: object) =>
    ({ operation: 'update', className: 'Order', objectId, fields }) as const;
  const failureOf = (work: Promise<unknown>) =>
    work.then(
      () => null,
      (error: unknown) => error,
    );

  it('are refused when they are proposed, as the write itself would be', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    for (const write of [
      update('o3', { state: 'lost' }),
      update('o9', { state: 'lost' }),
      update('o1', { orgId: 'south' }),
      update('o1', { $set: 1 }),
      { operation: 'create', className: 'Order', fields: { orgId: 'south' } } as const,
      { operation: 'delete', className: 'Order', objectId: 'o3' } as const,
    ])
      expect(await failureOf(set.propose(governed, write))).toBeInstanceOf(Refused);
    expect(set.changes).toEqual([]);
  });

  it('show a value that the caller may not read as any read would', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    const { before } = await set.propose(governed, {
      operation: 'delete',
      className: 'Order',
      objectId: 'o1',
    });
    expect(JSON.stringify(before)).not.toContain('of north');
    const [reviewed] = await governed.views.review(set.changes);
    expect(JSON.stringify(reviewed)).not.toContain('of north');
  });

  it('are judged again when they are applied, with the rights of that agent', async () => {
    const set = new HeldSet();
    await set.propose(await opened.open(NORTH), update('o1', { state: 'lost' }));
    const failure = await failureOf(set.apply(await opened.open(SOUTH)));
    expect(failure).toBeInstanceOf(ConflictingChanges);
    expect(await stateOf('o1')).toBe('paid');
  });

  it('follow each other in one set, and each row is changed once', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    await set.propose(governed, update('o1', { total: { __op: 'Increment', amount: 1 } }));
    await set.propose(governed, update('o1', { total: { __op: 'Increment', amount: 2 }, state: 'lost' }));
    expect(set.changes).toHaveLength(1);
    const made = await set.propose(governed, {
      operation: 'create',
      className: 'Customer',
      fields: { name: 'Bob' },
    });
    const objectId = made.objectId ?? '';
    await set.propose(governed, {
      operation: 'update',
      className: 'Customer',
      objectId,
      fields: { name: 'Eve' },
    });
    expect(set.changes).toHaveLength(2);
    await set.apply(governed);
    expect(await orders().findOne({ _id: 'o1' })).toMatchObject({ total: 13, state: 'lost' });
    const customer = await store.connection.collection('Customer').findOne({ _id: objectId });
    expect(customer).toMatchObject({ name: 'Eve', orgId: 'north' });
  });

  it('forget a new row that is deleted again, and write no row that they delete', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    const { objectId } = await set.propose(governed, {
      operation: 'create',
      className: 'Order',
      fields: { total: 1 },
    });
    await set.propose(governed, { operation: 'delete', className: 'Order', objectId });
    expect(set.changes).toEqual([]);
    await set.propose(governed, { operation: 'delete', className: 'Order', objectId: 'o1' });
    expect(await failureOf(set.propose(governed, update('o1', { total: 1 })))).toBeInstanceOf(Refused);
  });

  it('are not applied where a row of them would break a unique index, and name this row', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    await set.propose(governed, update('o1', { state: 'lost' }));
    await set.propose(governed, update('o2', { number: 'n1' }));
    const failure = await failureOf(set.apply(governed));
    expect((failure as ConflictingChanges).conflicts.map(({ objectId }) => objectId)).toEqual(['o2']);
    expect(await stateOf('o1')).toBe('paid');
  });

  it('are not applied where a row is gone', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    await set.propose(governed, update('o1', { state: 'lost' }));
    await set.propose(governed, update('o2', { state: 'lost' }));
    await orders().deleteOne({ _id: 'o2' });
    const failure = await failureOf(set.apply(governed));
    expect((failure as ConflictingChanges).conflicts.map(({ objectId }) => objectId)).toEqual(['o2']);
    expect(await stateOf('o1')).toBe('paid');
  });

  it('leave a column alone that another writer has changed without its time stamp', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    await set.propose(governed, update('o1', { state: 'lost' }));
    await orders().updateOne({ _id: 'o1' }, { $set: { total: 11 } });
    await set.apply(governed);
    expect(await orders().findOne({ _id: 'o1' })).toMatchObject({ total: 11, state: 'lost' });
  });

  it('are applied once by two that apply them at once', async () => {
    const set = new HeldSet();
    await set.propose(await opened.open(NORTH), update('o1', { total: { __op: 'Increment', amount: 1 } }));
    const both = [await opened.open(NORTH), await opened.open(NORTH)];
    const outcomes = await Promise.all(both.map((governed) => failureOf(set.apply(governed))));
    expect(outcomes.filter((outcome) => outcome === null)).toHaveLength(1);
    expect(await orders().findOne({ _id: 'o1' })).toMatchObject({ total: 11 });
  });

  it('are not taken back over the head of another writer, who is named', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    await set.propose(governed, update('o1', { state: 'lost' }));
    await set.propose(governed, update('o2', { state: 'lost' }));
    const applied = await set.apply(governed);
    await orders().updateOne({ _id: 'o2' }, { $set: { state: 'found', _updated_at: new Date() } });
    const { changes, conflicts } = await governed.invert(applied);
    expect(conflicts.map(({ objectId }) => objectId)).toEqual(['o2']);
    await governed.apply(changes, () => Promise.resolve());
    expect(await stateOf('o1')).toBe('paid');
    expect(await stateOf('o2')).toBe('found');
  });

  it('are not taken back for another tenant', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    await set.propose(governed, update('o1', { state: 'lost' }));
    await set.propose(governed, { operation: 'delete', className: 'Order', objectId: 'o2' });
    const applied = await set.apply(governed);
    const other = await opened.open(SOUTH);
    const { changes } = await other.invert(applied);
    expect(await failureOf(other.apply(changes, () => Promise.resolve()))).toBeInstanceOf(ConflictingChanges);
    expect(await orders().findOne({ _id: 'o2' })).toBe(null);
    expect(JSON.stringify(await other.views.review(changes))).not.toContain('of north');
  });

  it('show what an applied one replaced, to who may read the row as it was and as it is', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    await set.propose(governed, update('o1', { state: 'lost' }));
    await set.propose(governed, { operation: 'delete', className: 'Order', objectId: 'o2' });
    const applied = await set.apply(governed);
    expect(await governed.views.view(applied)).toMatchObject([
      { before: { state: 'paid' }, after: { state: 'lost' } },
      { before: { state: 'open', total: 20 }, after: null },
    ]);
    const hidden = { isReadable: false, before: null, after: null };
    const south = await opened.open(SOUTH);
    expect(await south.views.view(applied)).toMatchObject([hidden, hidden]);
    await orders().updateOne({ _id: 'o1' }, { $set: { orgId: 'south' } });
    for (const reader of [south, governed])
      expect((await reader.views.view(applied))[0]).toMatchObject(hidden);
  });

  it('show a new row to nobody whose rules do not show that it may be read', async () => {
    const set = new HeldSet();
    for (const state of ['open', 'lost'])
      await set.propose(await opened.open(NORTH), {
        operation: 'create',
        className: 'Order',
        fields: { state, total: 7 },
      });
    const seenBy = async (options: AgentDefinitionOptions) =>
      (await (await opened.open({ ...NORTH, ...options })).views.view(set.changes)).map(
        ({ after }) => after?.['state'] ?? null,
      );
    expect(await seenBy({})).toEqual(['open', 'lost']);
    expect(await seenBy({ filters: { Order: { state: 'lost' } } })).toEqual([null, 'lost']);
    expect(await seenBy({ filters: { Order: { note: { $regex: 'north' } } } })).toEqual([null, null]);
  });

  describe('that take a row back', () => {
    const ADA = { kind: 'aclUser', userId: 'u1' } as const;
    const NOBODY = { _rperm: [], _wperm: ['u1'], _acl: { u1: { w: true } } };
    const EVERYBODY = { _rperm: ['*'], _wperm: ['u1'], _acl: { '*': { r: true }, u1: { w: true } } };
    const takeBack = async (former: object, written: object) => {
      await orders().updateOne({ _id: 'o1' }, { $set: former });
      const set = new HeldSet();
      await set.propose(await opened.open(NORTH), update('o1', written));
      const applied = await set.apply(await opened.open(NORTH));
      return (await (await opened.open(NORTH)).invert(applied)).changes;
    };

    it('show nothing of a row that the caller may write and not read', async () => {
      const hidden = await takeBack(NOBODY, { state: 'lost' });
      const writer = await opened.open(NORTH, ADA);
      expect(JSON.stringify(await writer.views.review(hidden))).not.toContain('paid');
      expect(JSON.stringify(await writer.views.view(hidden))).not.toContain('paid');
    });

    it('show nothing of a row as it was when it was hidden', async () => {
      const changes = await takeBack({}, { state: 'lost', total: 1 });
      const filters = { Order: { state: 'lost' } };
      const narrow = await opened.open({ ...NORTH, filters });
      expect(JSON.stringify(await narrow.views.review(changes))).not.toContain('paid');
      expect(await narrow.views.view(changes)).toMatchObject([{ isReadable: false, after: null }]);
    });

    it('show the row to a user whom its rights let read it', async () => {
      const changes = await takeBack(EVERYBODY, { state: 'lost' });
      const reader = await opened.open(NORTH, ADA);
      const shown = { before: { state: 'lost' }, after: { state: 'paid' } };
      expect(await reader.views.view(changes)).toMatchObject([{ isReadable: true, ...shown }]);
      expect(await reader.views.review(changes)).toMatchObject([{ judged: { fields: { state: 'paid' } } }]);
    });
  });

  it('are taken back together, however many sets changed a row one after the other', async () => {
    const before = await orders().find({}).sort({ _id: 1 }).toArray();
    const governed = await opened.open(NORTH);
    const applied: AppliedChange[] = [];
    const apply = async (...writes: Parameters<HeldSet['propose']>[1][]) => {
      const set = new HeldSet();
      for (const write of writes) await set.propose(governed, write);
      applied.push(...(await set.apply(governed)));
      return applied.length;
    };
    await apply(update('o1', { state: 'lost' }), update('o2', { total: 1 }));
    await apply(update('o1', { total: 2 }), {
      operation: 'create',
      className: 'Order',
      fields: { number: 'n9' },
    });
    await apply(update('o1', { state: 'found' }), {
      operation: 'delete',
      className: 'Order',
      objectId: 'o2',
    });
    // In which order they are given does not matter.
    const { changes, conflicts } = await governed.invert(applied.toReversed());
    expect(conflicts).toEqual([]);
    expect(changes).toHaveLength(3);
    await governed.apply(changes, () => Promise.resolve());
    expect(await orders().find({}).sort({ _id: 1 }).toArray()).toEqual(before);
  });

  it('are not taken back together where somebody else wrote in between', async () => {
    const governed = await opened.open(NORTH);
    const applied: AppliedChange[] = [];
    for (const state of ['lost', 'found']) {
      const set = new HeldSet();
      await set.propose(governed, update('o1', { state }));
      applied.push(...(await set.apply(governed)));
      if (state === 'lost') await orders().updateOne({ _id: 'o1' }, { $set: { total: 99 } });
    }
    const { changes, conflicts } = await governed.invert(applied);
    expect(changes).toEqual([]);
    expect(conflicts.map(({ objectId }) => objectId)).toEqual(['o1']);
  });

  it('show another person what that person may read, and no more', async () => {
    const governed = await opened.open(NORTH);
    const set = new HeldSet();
    await set.propose(governed, update('o1', { state: 'lost', total: 9 }));
    const reader = await opened.open({ ...NORTH, permissions: 'readonly' });
    expect(await reader.views.view(set.changes)).toMatchObject([
      { isReadable: true, before: { state: 'paid', total: 10 }, after: { state: 'lost', total: 9 } },
    ]);
    for (const limits of [SOUTH, { ...NORTH, classes: { only: ['Customer'] } }]) {
      const viewed = await (await opened.open(limits)).views.view(set.changes);
      expect(viewed).toMatchObject([{ isReadable: false, className: null, objectId: null }]);
      expect(JSON.stringify(viewed)).not.toMatch(/lost|paid|o1/);
    }
  });

  it('have no way around them for an agent whose writes are proposed', async () => {
    const writes = opened.writesOf(NORTH);
    const classes = opened.writes.classes(opened.requestOf(NORTH), { tool: 'test', timeout: 30 });
    for (const work of [
      writes.create('Order', { total: 1 }),
      writes.update('Order', 'o1', { total: 1 }),
      writes.delete('Order', 'o1'),
      classes.createClass('Later'),
      classes.deleteClass('Customer'),
    ])
      expect(await failureOf(work)).toMatchObject({ refusal: { gate: 'mutations' } });
    expect(await orders().countDocuments()).toBe(3);
  });

  it('can be made of writes that happened at once, and taken back', async () => {
    const recorded: AppliedChange[] = [];
    class Recorder extends WriteRecorder {
      record(change: AppliedChange): Promise<void> {
        recorded.push(change);
        return Promise.resolve();
      }
    }
    const before = JSON.stringify(await orders().find({}).sort({ _id: 1 }).toArray());
    const transactions = new MongoRowTransactions(store.connection, store.catalogue);
    const writes = new RecordedWrites(store.writer, transactions, new Recorder());
    const { agent } = opened.requestOf(NORTH);
    const caller = { agent, tool: 'test' } as Parameters<typeof writes.run>[2];
    const where = {};
    const of = { className: 'Order', where } as const;
    const run = (operation: Parameters<typeof writes.run>[0]) => writes.run(operation, unhurried(), caller);
    await run({ kind: 'update', ...of, objectId: 'o1', fields: { state: 'lost' } });
    await run({ kind: 'delete', ...of, objectId: 'o2' });
    await run({ kind: 'create', className: 'Order', fields: { total: 1, orgId: 'north' } });
    expect(await run({ kind: 'delete', ...of, objectId: 'o9' })).toBe(false);
    expect(recorded.map(({ operation }) => operation)).toEqual(['update', 'delete', 'create']);
    const governed = await opened.open(NORTH);
    const { changes, conflicts } = await governed.invert(recorded);
    expect(conflicts).toEqual([]);
    await governed.apply(changes, () => Promise.resolve());
    expect(JSON.stringify(await orders().find({}).sort({ _id: 1 }).toArray())).toBe(before);
  });
});
