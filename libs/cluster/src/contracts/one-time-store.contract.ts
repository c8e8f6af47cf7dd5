import { describe, expect, it } from 'vitest';
import type { OneTimeStore } from '../one-time-store.js';
import type { MakePort } from './port-under-test.js';

/** What every store of one-time values promises. */
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

    it('hands out a copy: what the keeper changes later is not seen', async () => {
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

    it('takes times that are no whole milliseconds', async () => {
      const { port } = await make();
      await port.keep('k', { n: 1 }, 60_000.5);
      expect(await port.take('k')).toEqual({ n: 1 });
      expect(await port.claim('k', 0.2 + 60_000)).toBe(true);
    });
  });
}
