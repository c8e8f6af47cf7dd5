import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isWhole, withSeen } from './readiness.js';

const seenBy = (spans: readonly (readonly [number, number])[]) =>
  spans.reduce<ReturnType<typeof withSeen>>((seen, span) => withSeen(seen, span), []);

describe('what has been in view', () => {
  it('is whole once its parts leave no gap, in whatever order they came', () => {
    expect(isWhole(seenBy([[0, 400]]), 400)).toBe(true);
    expect(isWhole(seenBy([[0, 400]]), 900)).toBe(false);
    // To the end at once: the middle was never in view.
    const jumped = seenBy([
      [0, 400],
      [500, 900],
    ]);
    expect(isWhole(jumped, 900)).toBe(false);
    expect(isWhole(withSeen(jumped, [390, 510]), 900)).toBe(true);
    expect(isWhole(seenBy([[300, 100]]), 200)).toBe(false);
  });

  it('is whole exactly when every line of it was in one of its parts', () => {
    const span = fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 40 }));
    fc.assert(
      fc.property(fc.array(span), (spans) => {
        const lines = Array.from({ length: 20 }, (_, at) => 2 + at * 2);
        const all = lines.every((line) => spans.some(([from, to]) => from <= line - 2 && line <= to));
        // A line may lie across two parts that touch: then it counts as seen too.
        if (all) expect(isWhole(seenBy(spans), 40)).toBe(true);
        const gap = Array.from({ length: 40 }, (_, at) => at + 0.5).some(
          (at) => at > 1 && at < 39 && !spans.some(([from, to]) => from < at && at < to),
        );
        if (gap) expect(isWhole(seenBy(spans), 40)).toBe(false);
      }),
    );
  });
});
