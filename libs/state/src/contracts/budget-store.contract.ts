import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BUDGET_STEPS, type BudgetStore, compileBudget, type DataBudget, type DataUse } from '#core';
import type { MakePort } from './port-under-test.js';

/** Length of the windows below in seconds: long compared with the duration of a test. */
export const BUDGET_WINDOW_UNDER_TEST = 2000;
const STEP = (BUDGET_WINDOW_UNDER_TEST * 1000) / BUDGET_STEPS;

function createBudget(limits: Partial<DataUse>): DataBudget {
  const budget = compileBudget({ ...limits, window: BUDGET_WINDOW_UNDER_TEST });
  if (!budget) throw new TypeError('a budget without limits');
  return budget;
}

/** The contract of every store of data budgets. */
export function budgetStoreContract(name: string, make: MakePort<BudgetStore>, runs = 60): void {
  describe(`${name} keeps the contract of budget stores`, () => {
    it('admits calls until as many were counted as the budget has, and does not count refusals', async () => {
      const { port } = await make();
      const budget = createBudget({ calls: 3 });
      const verdicts = [];
      for (let call = 0; call < 6; call += 1) verdicts.push(await port.admit('a', budget));
      expect(verdicts.slice(0, 3)).toEqual([null, null, null]);
      for (const verdict of verdicts.slice(3))
        expect(verdict).toMatchObject({ quantity: 'calls', limit: 3, window: BUDGET_WINDOW_UNDER_TEST });
      expect(await port.readUse('a', budget)).toEqual({ calls: 3, rows: 0, bytes: 0, databaseTime: 0 });
    });

    it('counts no call for a later run of one, and refuses it for anything else that is used up', async () => {
      const { port } = await make();
      const budget = createBudget({ calls: 1, rows: 10 });
      expect(await port.admit('a', budget)).toBeNull();
      expect(await port.admit('a', budget, false)).toBeNull();
      expect(await port.readUse('a', budget)).toMatchObject({ calls: 1 });
      expect(await port.admit('a', budget)).toMatchObject({ quantity: 'calls' });
      await port.charge('a', budget, { rows: 10 });
      expect(await port.admit('a', budget, false)).toMatchObject({ quantity: 'rows' });
    });

    it.each(['rows', 'bytes', 'databaseTime'] as const)(
      'refuses once %s are used up, however much the last call used',
      async (quantity) => {
        const { port } = await make();
        const budget = createBudget({ [quantity]: 10 });
        await port.charge('a', budget, { [quantity]: 9 });
        expect(await port.admit('a', budget)).toBeNull();
        await port.charge('a', budget, { [quantity]: 5_000_000_000 });
        expect(await port.admit('a', budget)).toMatchObject({ quantity, limit: 10 });
      },
    );

    it('lets a use count for its window and at most one step more', async () => {
      const { port, pass } = await make();
      const budget = createBudget({ rows: 10 });
      await port.charge('a', budget, { rows: 10 });
      await pass(STEP * (BUDGET_STEPS - 1));
      const verdict = await port.admit('a', budget);
      expect(verdict?.retryAfter).toBeGreaterThan(0);
      expect(verdict?.retryAfter).toBeLessThanOrEqual((2 * STEP) / 1000);
      await pass(2 * STEP);
      expect(await port.admit('a', budget)).toBeNull();
      expect(await port.readUse('a', budget)).toMatchObject({ calls: 1, rows: 0 });
    });

    it('frees the oldest use first, and returns the wait until enough is free', async () => {
      const { port, pass } = await make();
      const budget = createBudget({ rows: 10 });
      await port.charge('a', budget, { rows: 4 });
      await pass(5 * STEP);
      await port.charge('a', budget, { rows: 8 });
      const wait = (await port.admit('a', budget))?.retryAfter ?? 0;
      expect(wait).toBeGreaterThan(((BUDGET_STEPS - 6) * STEP) / 1000);
      expect(wait).toBeLessThanOrEqual(((BUDGET_STEPS - 4) * STEP) / 1000);
      await pass((BUDGET_STEPS - 4) * STEP);
      expect(await port.admit('a', budget)).toBeNull();
      expect(await port.readUse('a', budget)).toMatchObject({ rows: 8 });
    });

    it('names the quantity that has to be waited for longest', async () => {
      const { port, pass } = await make();
      const budget = createBudget({ rows: 10, bytes: 10 });
      await port.charge('a', budget, { rows: 10 });
      await pass(5 * STEP);
      await port.charge('a', budget, { bytes: 10 });
      expect(await port.admit('a', budget)).toMatchObject({ quantity: 'bytes' });
    });

    it('keeps accounts and windows apart', async () => {
      const { port } = await make();
      const budget = createBudget({ calls: 1 });
      expect(await port.admit('a', budget)).toBeNull();
      expect(await port.admit('b', budget)).toBeNull();
      expect(await port.admit('a', { ...budget, window: 4000 })).toBeNull();
      expect(await port.admit('a', budget)).not.toBeNull();
    });

    it('counts parts of a unit as whole ones', async () => {
      const { port } = await make();
      const budget = createBudget({ databaseTime: 2 });
      await port.charge('a', budget, { databaseTime: 0.2 });
      await port.charge('a', budget, { databaseTime: 0.2 });
      expect(await port.admit('a', budget)).toMatchObject({ quantity: 'databaseTime' });
    });

    it('admits no more of many simultaneous calls than the budget has', async () => {
      const { port } = await make();
      const budget = createBudget({ calls: 5 });
      const verdicts = await Promise.all(Array.from({ length: 20 }, () => port.admit('a', budget)));
      expect(verdicts.filter((verdict) => verdict === null)).toHaveLength(5);
    });

    it('never admits more calls than the budget has in any window', async () => {
      const { port, pass } = await make();
      let round = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 25 }), async (gaps) => {
          round += 1;
          const budget = createBudget({ calls: 3 });
          const admitted: number[] = [];
          let at = 0;
          for (const gap of gaps) {
            if (gap > 0) await pass(gap * STEP);
            at += gap;
            if ((await port.admit(`round ${round}`, budget)) === null) admitted.push(at);
          }
          for (const time of admitted) {
            const window = admitted.filter((other) => other > time - BUDGET_STEPS && other <= time);
            expect(window.length).toBeLessThanOrEqual(3);
          }
        }),
        { numRuns: runs },
      );
    });
  });
}
