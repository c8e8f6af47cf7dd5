import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Owner } from '#core';
import type { ChangeSet, ChangeSets, StoredEntry } from '../changes/change-sets.js';
import { PATIENT } from './operation.js';

export interface OpenChangeSets {
  readonly sets: ChangeSets;
  close(): Promise<void>;
}

const ADA: Owner = { principal: 'ada', tenant: 'north', agent: 'support' };
const BOB: Owner = { principal: 'bob', tenant: null, agent: 'support' };

/** The contract of every store of change sets. @param open one that contains nothing */
export function changeSetsContract(name: string, open: () => Promise<OpenChangeSets>): void {
  describe(`${name} stores change sets`, PATIENT, () => {
    let store: OpenChangeSets;
    let sets: ChangeSets;
    beforeEach(async () => {
      store = await open();
      sets = store.sets;
    });
    afterEach(() => store.close());

    it('gives back a set as it was stored', async () => {
      const set = newSet('s1', {
        entries: [entryOf(1), entryOf(2)],
        next: 3,
        title: 'Refund',
        undoes: ['s0'],
      });
      expect(await sets.create(set)).toBe(true);
      expect(await sets.find('s1')).toEqual(set);
      expect(await sets.findOpen(ADA)).toEqual(set);
      expect(await sets.find('s2')).toBe(null);
    });

    it('stores one set of an id, and one open set of an owner', async () => {
      expect(await sets.create(newSet('s1'))).toBe(true);
      expect(await sets.create(newSet('s1', { state: 'submitted' }))).toBe(false);
      expect(await sets.create(newSet('s2'))).toBe(false);
      expect(await sets.create(newSet('s3', { state: 'applied', kind: 'direct' }))).toBe(true);
      expect(await sets.create(newSet('s4', { owner: BOB }))).toBe(true);
      for (const other of [{ tenant: null }, { tenant: 'south' }, { agent: 'sales' }, { principal: 'eve' }])
        expect(await sets.findOpen({ ...ADA, ...other })).toBe(null);
    });

    it('keeps owners apart by their tenants and rights, and gives them back', async () => {
      const owners: readonly Owner[] = [
        ADA,
        { ...ADA, rights: ['user:ann'] },
        { ...ADA, rights: ['user:bob'] },
        { ...ADA, tenants: [['org', 'user:ann']] },
      ];
      for (const [at, owner] of owners.entries())
        expect(await sets.create(newSet(`s${at}`, { owner }))).toBe(true);
      for (const [at, owner] of owners.entries())
        expect(await sets.findOpen(owner)).toEqual(
          newSet(`s${at}`, { owner, ...timesOf(await sets.find(`s${at}`)) }),
        );
    });

    it('lets an owner open another set once its own takes no more writes', async () => {
      await sets.create(newSet('s1'));
      expect(await sets.change('s1', 1, { state: 'submitted' })).toBe(true);
      expect(await sets.findOpen(ADA)).toBe(null);
      expect(await sets.create(newSet('s2'))).toBe(true);
      expect((await sets.findOpen(ADA))?.id).toBe('s2');
    });

    it('adds, replaces and deletes entries, and leaves every other member as it was', async () => {
      const set = newSet('s1', { entries: [entryOf(1), entryOf(2)], next: 3 });
      await sets.create(set);
      const replaced = { ...entryOf(2), operation: 'delete' as const, fields: [], sealed: 'other' };
      const change = { put: [replaced, entryOf(3)], remove: [1], next: 4, title: 'Refund' };
      expect(await sets.change('s1', 1, change)).toBe(true);
      expect(await sets.find('s1')).toEqual({
        ...set,
        revision: 2,
        next: 4,
        title: 'Refund',
        entries: [replaced, entryOf(3)],
      });
    });

    it('deletes what is sealed in an entry', async () => {
      await sets.create(newSet('s1', { entries: [entryOf(1)] }));
      const { sealed: _sealed, ...bare } = entryOf(1);
      await sets.change('s1', 1, { put: [bare] });
      expect((await sets.find('s1'))?.entries).toEqual([bare]);
    });

    it('changes a set of the revision that was read, and no other', async () => {
      await sets.create(newSet('s1'));
      const changes = await Promise.all(
        Array.from({ length: 8 }, (_, at) => sets.change('s1', 1, { title: `t${at}` })),
      );
      expect(changes.filter(Boolean)).toHaveLength(1);
      expect(await sets.change('s1', 1, { state: 'applied' })).toBe(false);
      expect(await sets.change('s9', 1, { state: 'applied' })).toBe(false);
      expect(await sets.find('s1')).toMatchObject({ revision: 2, state: 'open' });
    });

    it('takes one of many sets that are opened at once', async () => {
      const opened = await Promise.all(Array.from({ length: 8 }, (_, at) => sets.create(newSet(`s${at}`))));
      expect(opened.filter(Boolean)).toHaveLength(1);
    });

    it('lists sets newest first, without what is sealed', async () => {
      await sets.create(
        newSet('s1', { entries: [entryOf(1)], state: 'applied', appliedAt: 500, openedAt: 1 }),
      );
      await sets.create(newSet('s2', { state: 'denied', openedAt: 3 }));
      const tracks = [entryOf(1), { ...entryOf(2), className: 'Track' }];
      await sets.create(
        newSet('s3', {
          owner: BOB,
          state: 'applied',
          appliedAt: 700,
          openedAt: 2,
          entries: tracks,
          undoneBy: 's9',
        }),
      );
      const ids = async (query: object) => (await sets.list({ limit: 10, ...query })).map(({ id }) => id);
      expect(await ids({})).toEqual(['s2', 's3', 's1']);
      expect(await ids({ limit: 1 })).toEqual(['s2']);
      expect(await ids({ owner: ADA })).toEqual(['s2', 's1']);
      expect(await ids({ states: ['applied'] })).toEqual(['s3', 's1']);
      expect(await ids({ agent: 'sales' })).toEqual([]);
      expect(await ids({ tenant: null })).toEqual(['s3']);
      expect(await ids({ tenant: 'north' })).toEqual(['s2', 's1']);
      expect(await ids({ since: 500, until: 700 })).toEqual(['s1']);
      expect(await ids({ since: 501 })).toEqual(['s3']);
      // What is not applied counts by when it was opened.
      expect(await ids({ until: 501 })).toEqual(['s2', 's1']);
      expect(await ids({ className: 'Album' })).toEqual(['s3', 's1']);
      expect(await ids({ className: 'Track' })).toEqual(['s3']);
      expect(await ids({ className: '$_id' })).toEqual([]);
      expect(await ids({ states: ['applied'], isUndone: true })).toEqual(['s3']);
      expect(await ids({ states: ['applied'], isUndone: false })).toEqual(['s1']);
      const [listed] = await sets.list({ owner: ADA, states: ['applied'], limit: 1 });
      const { sealed: _sealed, ...bare } = entryOf(1);
      expect(listed?.entries).toEqual([bare]);
    });

    it('lists sets that have a key, however many were opened since', async () => {
      const keyed = { ...entryOf(1), keys: { k1: 'digest' } };
      await sets.create(newSet('s1', { entries: [keyed], state: 'applied', appliedAt: 1, openedAt: 1 }));
      await sets.create(newSet('s2', { openedAt: 2 }));
      await sets.change('s2', 1, { put: [{ ...entryOf(1), keys: { k2: 'digest' } }, entryOf(2)] });
      for (let n = 3; n < 9; n += 1) await sets.create(newSet(`s${n}`, { state: 'applied', openedAt: n }));
      const ids = async (key: string, query: object = {}) =>
        (await sets.list({ owner: ADA, key, limit: 1, ...query })).map(({ id }) => id);
      expect(await ids('k1')).toEqual(['s1']);
      expect(await ids('k2')).toEqual(['s2']);
      expect(await ids('k2', { states: ['applied'] })).toEqual([]);
      expect(await ids('k1', { owner: BOB })).toEqual([]);
      expect(await ids('k3')).toEqual([]);
      const bare = { ...keyed, sealed: undefined };
      await sets.change('s1', 1, { put: [bare] });
      expect(await ids('k1')).toEqual(['s1']);
    });

    it('lists sets by the names of the credentials that wrote their rows', async () => {
      const by = (entry: number, ...keyNames: string[]) => ({ ...entryOf(entry), keyNames });
      const applied = { state: 'applied', appliedAt: 1 } as const;
      await sets.create(newSet('s1', { ...applied, openedAt: 1, entries: [by(1, 'laptop')] }));
      await sets.create(
        newSet('s2', { ...applied, openedAt: 2, entries: [entryOf(1), by(2, 'laptop', 'ci')] }),
      );
      await sets.create(newSet('s3', { ...applied, openedAt: 3, entries: [entryOf(1)] }));
      const ids = async (keyName: string | null, query: object = {}) =>
        (await sets.list({ limit: 10, keyName, ...query })).map(({ id }) => id);
      expect(await ids('laptop')).toEqual(['s2', 's1']);
      expect(await ids('ci')).toEqual(['s2']);
      expect(await ids('ci', { className: 'Album' })).toEqual(['s2']);
      expect(await ids('ci', { className: 'Track' })).toEqual([]);
      for (const other of ['c', '$_id', '']) expect(await ids(other)).toEqual([]);
      expect(await ids(null)).toEqual(['s3', 's2']);
      expect(await sets.find('s2')).toMatchObject({ entries: [entryOf(1), by(2, 'laptop', 'ci')] });
    });

    it('lists sets that have expired', async () => {
      await sets.create(newSet('s1', { expiresAt: 5 }));
      await sets.create(newSet('s2', { owner: BOB, state: 'submitted', expiresAt: 6 }));
      const ids = async (expiredBy: number) =>
        (await sets.list({ states: ['open', 'submitted'], expiredBy, limit: 10 }))
          .map(({ id }) => id)
          .toSorted();
      expect(await ids(4)).toEqual([]);
      expect(await ids(5)).toEqual(['s1']);
      expect(await ids(6)).toEqual(['s1', 's2']);
    });

    it('forgets a set whose time is over', async () => {
      await sets.create(newSet('s1', { deletedAt: Date.now() - 1 }));
      expect(await sets.find('s1')).toBe(null);
      expect(await sets.findOpen(ADA)).toBe(null);
      expect(await sets.list({ limit: 10 })).toEqual([]);
    });
  });
}

const timesOf = (set: ChangeSet | null) => set && { expiresAt: set.expiresAt, deletedAt: set.deletedAt };

function newSet(id: string, members: Partial<ChangeSet> = {}): ChangeSet {
  return {
    id,
    owner: ADA,
    kind: 'proposed',
    state: 'open',
    revision: 1,
    openedAt: 1_000,
    expiresAt: Date.now() + 60_000,
    deletedAt: Date.now() + 120_000,
    entries: [],
    next: 1,
    ...members,
  };
}

function entryOf(entry: number): StoredEntry {
  return {
    entry,
    operation: 'update',
    className: 'Album',
    objectId: `a${entry}`,
    fields: ['title'],
    ...(entry === 1 && { keys: { k: 'd' } }),
    sealed: `sealed ${entry}`,
  };
}
