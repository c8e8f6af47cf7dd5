import { describe, expect, it } from 'vitest';
import { type OneTimeStore, SharedStateUnavailable } from '../ports/stores.js';
import type { MakePort } from './port-under-test.js';

/** Limits of each owner. */
export const TIGHT_ONE_TIME = { values: { entries: 3 }, claims: { entries: 3 } };

/** The contract of every store of one-time values, with `TIGHT_ONE_TIME` as its shares. */
export function oneTimeStoreContract(name: string, make: MakePort<OneTimeStore>): void {
  describe(`${name} keeps the contract of one-time values`, () => {
    it('hands a value out once', async () => {
      const { port } = await make();
      await port.keep('k', { asked: 'approval', n: 1, deep: [{ a: null }] }, 60_000);
      expect(await port.take('k')).toEqual({ asked: 'approval', n: 1, deep: [{ a: null }] });
      expect(await port.take('k')).toBeUndefined();
    });

    it('knows nothing of a value never kept', async () => {
      expect(await (await make()).port.take('never')).toBeUndefined();
    });

    it('gives one of many simultaneous takers the value', async () => {
      const { port } = await make();
      await port.keep('k', { n: 1 }, 60_000);
      const taken = await Promise.all(Array.from({ length: 20 }, () => port.take('k')));
      expect(taken.filter((value) => value !== undefined)).toEqual([{ n: 1 }]);
    });

    it('keeps the latest value of a key', async () => {
      const { port } = await make();
      await port.keep('k', { n: 1 }, 60_000);
      await port.keep('k', { n: 2 }, 60_000);
      expect(await port.take('k')).toEqual({ n: 2 });
      expect(await port.take('k')).toBeUndefined();
    });

    it('forgets a value after its time', async () => {
      const { port, pass } = await make();
      await port.keep('short', { n: 1 }, 10_000);
      await port.keep('long', { n: 2 }, 60_000);
      await pass(10_000);
      expect(await port.take('short')).toBeUndefined();
      expect(await port.take('long')).toEqual({ n: 2 });
    });

    it('returns a copy: what the caller changes later is not stored', async () => {
      const { port } = await make();
      const value = { list: [1] };
      await port.keep('k', value, 60_000);
      value.list.push(2);
      expect(await port.take('k')).toEqual({ list: [1] });
    });

    it('lets one of many simultaneous callers claim a key', async () => {
      const { port } = await make();
      const claims = await Promise.all(Array.from({ length: 20 }, () => port.claim('k', 60_000)));
      expect(claims.filter(Boolean)).toHaveLength(1);
      expect(await port.claim('k', 60_000)).toBe(false);
    });

    it('lets a key be claimed again after its time, which a failed claim does not prolong', async () => {
      const { port, pass } = await make();
      await port.claim('k', 10_000);
      await pass(9_000);
      expect(await port.claim('k', 10_000)).toBe(false);
      await pass(2_000);
      expect(await port.claim('k', 10_000)).toBe(true);
    });

    it('keeps claims and values of the same key apart', async () => {
      const { port } = await make();
      expect(await port.claim('k', 60_000)).toBe(true);
      expect(await port.take('k')).toBeUndefined();
      await port.keep('k', { n: 1 }, 60_000);
      await port.take('k');
      expect(await port.claim('k', 60_000)).toBe(false);
    });

    it('forgets the oldest value of an owner beyond its share, and nobody else’s', async () => {
      const { port, pass } = await make();
      await port.keep('theirs', { n: 0 }, 60_000, 'bob');
      for (const n of [1, 2, 3, 4]) {
        await port.keep(`mine-${n}`, { n }, 60_000, 'ada');
        await pass(10);
      }
      expect(await port.take('mine-1')).toBeUndefined();
      for (const n of [2, 3, 4]) expect(await port.take(`mine-${n}`)).toEqual({ n });
      expect(await port.take('theirs')).toEqual({ n: 0 });
    });

    it('refuses an owner a claim beyond its share, forgets none of them, and serves others', async () => {
      const { port, pass } = await make();
      for (const n of [1, 2, 3]) expect(await port.claim(`mine-${n}`, 10_000, 'ada')).toBe(true);
      await expect(port.claim('mine-4', 10_000, 'ada')).rejects.toBeInstanceOf(SharedStateUnavailable);
      for (const n of [1, 2, 3]) expect(await port.claim(`mine-${n}`, 10_000, 'ada')).toBe(false);
      expect(await port.claim('theirs', 10_000, 'bob')).toBe(true);
      await pass(10_001);
      expect(await port.claim('mine-4', 10_000, 'ada')).toBe(true);
    });

    it('takes times that are no whole milliseconds', async () => {
      const { port } = await make();
      await port.keep('k', { n: 1 }, 60_000.5);
      expect(await port.take('k')).toEqual({ n: 1 });
      expect(await port.claim('k', 0.2 + 60_000)).toBe(true);
    });
  });
}
