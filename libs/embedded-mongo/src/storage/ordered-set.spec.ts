import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OrderedSet } from './ordered-set.js';

const numbers = (): OrderedSet<number> => new OrderedSet<number>((a, b) => a - b);

describe('OrderedSet', () => {
  it('holds the same sorted items as a plain set, whatever is inserted and removed', () => {
    const steps = fc.array(fc.record({ add: fc.boolean(), value: fc.integer({ min: 0, max: 400 }) }), {
      maxLength: 900,
    });
    fc.assert(
      fc.property(steps, (list) => {
        const set = numbers();
        const model = new Set<number>();
        for (const { add, value } of list) {
          if (add) set.insert(value);
          const known = add ? model.add(value).has(value) : model.delete(value);
          expect(add || set.remove(value)).toBe(known);
        }
        const sorted = [...model].sort((a, b) => a - b);
        expect([...set.range()]).toEqual(sorted);
        expect([...set.range(0, set.size, true)]).toEqual(sorted.toReversed());
        expect(set.size).toBe(sorted.length);
        for (const probe of [-1, 0, 57, 200, 401]) {
          const rank = sorted.filter((value) => value < probe).length;
          expect(set.rank((item) => item - probe)).toBe(rank);
          expect(set.at(rank)).toBe(sorted[rank]);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('never changes a snapshot, and a snapshot never changes its origin', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 999 }), { minLength: 1, maxLength: 500 }),
        fc.array(fc.integer({ min: 0, max: 999 }), { minLength: 1, maxLength: 200 }),
        (initial, later) => {
          const set = numbers();
          for (const value of initial) set.insert(value);
          const before = [...set.range()];
          const snapshot = set.snapshot();
          for (const value of later) if (value % 2) set.insert(value + 1000);
          for (const value of later) set.remove(value);
          expect([...snapshot.range()]).toEqual(before);
          const live = [...set.range()];
          for (const value of later) snapshot.insert(value - 1000);
          expect([...set.range()]).toEqual(live);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('replaces an item that compares equal', () => {
    const set = new OrderedSet<{ id: number; text: string }>((a, b) => a.id - b.id);
    set.insert({ id: 1, text: 'old' });
    set.insert({ id: 1, text: 'new' });
    expect([...set.range()]).toEqual([{ id: 1, text: 'new' }]);
  });
});
