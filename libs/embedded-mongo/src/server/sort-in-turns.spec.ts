import { describe, expect, it } from 'vitest';
import { mongoError } from '../errors.js';
import { OperationTable } from './operation.js';
import { sortInTurns } from './steps.js';

import fc from 'fast-check';

const operation = () =>
  new OperationTable().start(
    {
      connectionId: 1,
      client: '',
      appName: undefined,
      name: 'find',
      namespace: 'd.c',
      command: {},
      lsid: undefined,
    },
    0,
  );

describe('sortInTurns', () => {
  it('gives what a stable sort gives', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(20), { maxLength: 5_000, size: 'max' }), async (numbers) => {
        const items = numbers.map((key, at) => ({ key, at }));
        const compare = (a: { key: number }, b: { key: number }): number => a.key - b.key;
        expect(await sortInTurns(operation(), items, compare)).toEqual(items.toSorted(compare));
      }),
      { numRuns: 20 },
    );
  });

  it('ends in the middle when its operation is stopped', async () => {
    const stopped = operation();
    const items = Array.from({ length: 50_000 }, (_, n) => -n);
    let compared = 0;
    const sorting = sortInTurns(stopped, items, (a, b) => {
      if ((compared += 1) === 1_000) stopped.stop(mongoError(11601, 'operation was interrupted'));
      return a - b;
    });
    await expect(sorting).rejects.toThrow('interrupted');
    expect(compared).toBeLessThan(50_000);
  });
});
