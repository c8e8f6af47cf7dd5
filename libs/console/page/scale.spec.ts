import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { roundTicks, timeTicks } from './scale.js';

describe('the ticks of an axis', () => {
  it.each([
    [103, [0, 50, 100, 150]],
    [1, [0, 0.5, 1]],
    [0.3, [0, 0.1, 0.2, 0.3]],
    [0, [0, 0.5, 1]],
    [230_000, [0, 100_000, 200_000, 300_000]],
  ])('are round: up to %d', (highest, ticks) => {
    expect(roundTicks(highest)).toEqual(ticks);
  });

  it('count whole things in whole numbers', () => {
    expect(roundTicks(2, 4, true)).toEqual([0, 1, 2]);
  });

  it('begin at 0, reach the highest value, and are few, whatever the values are', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-6, max: 1e15, noNaN: true }), fc.boolean(), (highest, whole) => {
        const ticks = roundTicks(highest, 4, whole);
        expect(ticks[0]).toBe(0);
        expect(ticks.at(-1)).toBeGreaterThanOrEqual(highest * (1 - 1e-6));
        expect(ticks.length).toBeLessThanOrEqual(6);
        if (whole) expect(ticks.every(Number.isInteger)).toBe(true);
      }),
    );
    for (const odd of [Number.NaN, Number.POSITIVE_INFINITY, -1])
      expect(roundTicks(odd)).toEqual([0, 0.5, 1]);
  });
});

describe('the ticks of a time axis', () => {
  const MINUTE = 60_000;

  it('are full quarters of an hour in an hour', () => {
    const from = Date.parse('2026-11-23T04:07:00Z');
    const ticks = timeTicks(from, from + 60 * MINUTE, 5).map((at) => new Date(at).getUTCMinutes());
    expect(ticks).toEqual([15, 30, 45, 0]);
  });

  it('lie in the time that is shown, in equal steps, and are few', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 4e12 }),
        fc.integer({ min: 2, max: 60 * 24 * 90 }),
        fc.integer({ min: 2, max: 12 }),
        (from, minutes, count) => {
          const to = from + minutes * MINUTE;
          const ticks = timeTicks(from, to, count);
          expect(ticks.length).toBeLessThanOrEqual(count + 1);
          for (const at of ticks) expect(at >= from && at <= to).toBe(true);
          const steps = new Set(ticks.slice(1).map((at, index) => at - (ticks[index] ?? 0)));
          expect(steps.size).toBeLessThanOrEqual(1);
        },
      ),
    );
    expect(timeTicks(5, 5, 4)).toEqual([]);
  });
});
