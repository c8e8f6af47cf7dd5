import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChangedRows } from './changed-rows.js';

const change = fc.record({ objectId: fc.constantFrom('a', 'b', 'c', 'd'), created: fc.boolean() });

describe('the changes of a class', () => {
  it('are the ones since the number, as far as they are remembered, each row once', () => {
    fc.assert(
      fc.property(
        fc.array(fc.option(change), { maxLength: 30 }),
        fc.nat(30),
        fc.integer({ min: 1, max: 8 }),
        (all, from, capacity) => {
          const changes = new ChangedRows(capacity);
          for (const one of all) {
            if (one) changes.add(one);
            else changes.addGap();
          }
          expect(changes.last).toBe(all.length);
          const number = Math.min(from, all.length);
          const since = all.slice(number);
          const remembered = since.slice(-capacity);
          const told = changes.since(number);
          expect(told.ids).toEqual([...new Set(remembered.flatMap((one) => (one ? [one.objectId] : [])))]);
          expect(told.gap).toBe(since.includes(null));
          const lostNone = remembered.length === since.length;
          expect(told.onlyCreated).toBe(lostNone && since.every((one) => one?.created === true));
        },
      ),
    );
  });
});
