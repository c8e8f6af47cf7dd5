import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Refused } from '#core';
import { type AppliedChange, ConflictingChanges, type ParleyChanges, type ProposedWrite } from '#data';
import { MUSIC_SEED, PATIENT } from '#data/contracts';
import { TestDatabase } from '../test-database.contract.js';
import { HeldSet, openChanges } from './governed-changes.fixture.js';

type Store = Awaited<ReturnType<TestDatabase['open']>>;

const ROWS = ['a1', 'a2', 'a3', 'a4'];

const fields = fc.record(
  {
    title: fc.string({ minLength: 1, maxLength: 5 }),
    tags: fc.oneof(
      fc.array(fc.constantFrom('x', 'y'), { maxLength: 2 }),
      fc.constant({ __op: 'Delete' }),
      fc.constant({ __op: 'Add', objects: ['z'] }),
      fc.constant({ __op: 'AddUnique', objects: ['x'] }),
    ),
    released: fc.oneof(
      fc.constant(null),
      fc.constant({ __op: 'Delete' }),
      fc.constant({ __type: 'Date', iso: '2026-01-02T03:04:05.678Z' }),
    ),
    artist: fc.constantFrom(
      { __type: 'Pointer', className: 'Artist', objectId: 'oak' },
      { __type: 'Pointer', className: 'Artist', objectId: 'ivy' },
    ),
  },
  { requiredKeys: [] },
);

const row = fc.constantFrom(...ROWS, 'created');
const write = fc.oneof(
  fields.map((written) => ({ operation: 'create', fields: { title: 'New', ...written } }) as const),
  fc.record({ operation: fc.constant('update' as const), row, fields }),
  fc.record({ operation: fc.constant('delete' as const), row }),
);
const sets = fc.array(fc.array(write, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 });

type RandomWrite = typeof write extends fc.Arbitrary<infer T> ? T : never;

/** Every document of the database as its bytes. */
async function dump({ connection }: Store): Promise<readonly string[]> {
  const names = ['Album', 'Artist'];
  const all = names.map(async (name) => {
    const found = await connection.collection(name).find({}, { raw: true }).sort({ _id: 1 }).toArray();
    return found.map((bytes) => `${name} ${Buffer.from(bytes as unknown as Uint8Array).toString('base64')}`);
  });
  return (await Promise.all(all)).flat();
}

/** Proposes random writes; those that are refused are no part of the set. */
async function proposeAll(governed: ParleyChanges, writes: readonly RandomWrite[]): Promise<HeldSet> {
  const set = new HeldSet();
  for (const one of writes) {
    const created = set.changes.find(({ operation }) => operation === 'create')?.objectId ?? 'a1';
    const target = 'row' in one ? (one.row === 'created' ? created : one.row) : null;
    const asked = { className: 'Album', ...one, objectId: target } as ProposedWrite;
    await set.propose(governed, asked).catch((error: unknown) => {
      if (!(error instanceof Refused)) throw error;
    });
  }
  return set;
}

describe('Random sets of changes', PATIENT, () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await TestDatabase.start();
  });
  afterAll(() => database.stop());

  async function check(store: Store, given: readonly (readonly RandomWrite[])[]): Promise<void> {
    const { open } = await openChanges(store);
    const before = await dump(store);
    const applied: (readonly AppliedChange[])[] = [];
    for (const writes of given) {
      const governed = await open();
      const known = await dump(store);
      const set = await proposeAll(governed, writes);
      expect(await dump(store)).toEqual(known);
      applied.push(await set.apply(governed));
      expect(new Set(set.changes.map(({ objectId }) => objectId)).size).toBe(set.changes.length);
    }
    for (const one of applied.toReversed()) {
      const governed = await open();
      const { changes, conflicts } = await governed.invert(one);
      expect(conflicts).toEqual([]);
      await governed.apply(changes, () => Promise.resolve());
    }
    expect(await dump(store)).toEqual(before);
  }

  it('leave the database byte for byte as it was once they are applied and undone', async () => {
    await fc.assert(
      fc.asyncProperty(sets, async (given) => {
        const store = await database.open(MUSIC_SEED);
        try {
          await check(store, given);
        } finally {
          await store.close();
        }
      }),
      { numRuns: 12 },
    );
  });

  it('are applied whole or not at all where another writer comes between', async () => {
    await fc.assert(
      fc.asyncProperty(sets, fc.constantFrom(...ROWS), async ([writes = []], changed) => {
        const store = await database.open(MUSIC_SEED);
        try {
          const { open } = await openChanges(store);
          const governed = await open();
          const set = await proposeAll(governed, writes);
          await store.connection
            .collection('Album')
            .updateOne({ _id: changed }, { $set: { title: 'of another', _updated_at: new Date() } });
          const between = await dump(store);
          const touches = set.changes.some(({ objectId }) => objectId === changed);
          const outcome = await set.apply(governed).catch((error: unknown) => error);
          if (!touches) {
            expect(outcome).not.toBeInstanceOf(Error);
            return;
          }
          expect(outcome).toBeInstanceOf(ConflictingChanges);
          const { conflicts } = outcome as ConflictingChanges;
          expect(conflicts.map(({ objectId }) => objectId)).toEqual([changed]);
          expect(await dump(store)).toEqual(between);
        } finally {
          await store.close();
        }
      }),
      { numRuns: 12 },
    );
  });
});
