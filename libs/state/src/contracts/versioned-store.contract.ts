import { describe, expect, it } from 'vitest';
import { SharedStateUnavailable, type VersionedStore } from '../ports/stores.js';
import type { MakePort } from './port-under-test.js';

/** Limits of each owner. */
export const TIGHT_RECORDS = { entries: 3, weight: 400 };

/** The contract of every store of versioned records, with `TIGHT_RECORDS` as its share. */
export function versionedStoreContract(name: string, make: MakePort<VersionedStore>): void {
  describe(`${name} keeps the contract of versioned records`, () => {
    it('refuses an owner another record beyond its share, and serves others', async () => {
      const { port, pass } = await make();
      for (const id of ['a', 'b', 'c']) expect(await port.create(id, {}, 10_000, 'ada')).toBe(true);
      await expect(port.create('d', {}, 10_000, 'ada')).rejects.toBeInstanceOf(SharedStateUnavailable);
      expect(await port.find('d')).toBeUndefined();
      expect(await port.create('e', {}, 10_000, 'bob')).toBe(true);
      await port.remove('a');
      expect(await port.create('d', {}, 10_000, 'ada')).toBe(true);
      await pass(10_001);
      expect(await port.create('f', {}, 10_000, 'ada')).toBe(true);
    });

    it('makes the oldest record of an owner give way when one of its records grows beyond the share', async () => {
      const { port, pass } = await make();
      await port.create('theirs', { n: 0 }, 60_000, 'bob');
      await port.create('nobodys', { n: 0 }, 60_000);
      for (const id of ['old', 'new']) {
        await port.create(id, { text: 'x'.repeat(100) }, 60_000, 'ada');
        await pass(10);
      }
      expect(await port.replace('new', 1, { text: 'x'.repeat(350) }, 60_000)).toBe(true);
      expect(await port.find('old')).toBeUndefined();
      expect((await port.find('new'))?.revision).toBe(2);
      await expect(port.create('more', { text: 'x'.repeat(100) }, 60_000, 'ada')).rejects.toBeInstanceOf(
        SharedStateUnavailable,
      );
      for (const id of ['theirs', 'nobodys']) expect((await port.find(id))?.value).toEqual({ n: 0 });
    });

    it('finds what was created, with its first revision', async () => {
      const { port } = await make();
      expect(await port.create('r', { state: 'new', deep: [{ a: null }] }, 60_000)).toBe(true);
      expect(await port.find('r')).toEqual({ value: { state: 'new', deep: [{ a: null }] }, revision: 1 });
    });

    it('creates an id once, however many try at the same time', async () => {
      const { port } = await make();
      const created = await Promise.all(
        Array.from({ length: 20 }, (_, n) => port.create('r', { n }, 60_000)),
      );
      expect(created.filter(Boolean)).toHaveLength(1);
    });

    it('lets one of many simultaneous changes of one revision through', async () => {
      const { port } = await make();
      await port.create('r', { n: 0 }, 60_000);
      const changed = await Promise.all(
        Array.from({ length: 20 }, (_, n) => port.replace('r', 1, { n: n + 1 }, 60_000)),
      );
      expect(changed.filter(Boolean)).toHaveLength(1);
      const found = await port.find('r');
      expect(found?.revision).toBe(2);
      expect(found?.value).toEqual({ n: changed.indexOf(true) + 1 });
    });

    it('changes nothing on the base of an older or another revision, or a record that is gone', async () => {
      const { port } = await make();
      await port.create('r', { n: 0 }, 60_000);
      await port.replace('r', 1, { n: 1 }, 60_000);
      expect(await port.replace('r', 1, { n: 2 }, 60_000)).toBe(false);
      expect(await port.replace('r', 3, { n: 2 }, 60_000)).toBe(false);
      expect(await port.replace('other', 1, { n: 2 }, 60_000)).toBe(false);
      expect((await port.find('r'))?.value).toEqual({ n: 1 });
    });

    it('forgets a record after its time, which a change restarts', async () => {
      const { port, pass } = await make();
      await port.create('r', { n: 0 }, 10_000);
      await pass(6_000);
      await port.replace('r', 1, { n: 1 }, 10_000);
      await pass(6_000);
      expect(await port.find('r')).toBeDefined();
      await pass(6_000);
      expect(await port.find('r')).toBeUndefined();
      expect(await port.create('r', { n: 9 }, 10_000)).toBe(true);
    });

    it('knows nothing of what was removed', async () => {
      const { port } = await make();
      await port.create('r', { n: 0 }, 60_000);
      await port.remove('r');
      await port.remove('never');
      expect(await port.find('r')).toBeUndefined();
    });

    it('lists what changed last first, without what was removed or has ended', async () => {
      const { port, pass } = await make();
      expect(await port.latest(10)).toEqual([]);
      for (const id of ['a', 'b', 'c', 'd']) await port.create(id, { id }, id === 'b' ? 1_000 : 60_000);
      await port.replace('a', 1, { id: 'a2' }, 60_000);
      await port.remove('d');
      await pass(2_000);
      expect(await port.latest(10)).toEqual([
        { id: 'a', value: { id: 'a2' }, revision: 2 },
        { id: 'c', value: { id: 'c' }, revision: 1 },
      ]);
      expect((await port.latest(1)).map(({ id }) => id)).toEqual(['a']);
      expect(await port.latest(0)).toEqual([]);
    });

    it('returns a copy: what the caller changes later is not stored', async () => {
      const { port } = await make();
      const value = { list: [1] };
      await port.create('r', value, 60_000);
      value.list.push(2);
      expect((await port.find('r'))?.value).toEqual({ list: [1] });
    });
  });
}
