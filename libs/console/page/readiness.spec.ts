import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isInView, isWhole, Reading, withSeen } from './readiness.js';

const collectSeen = (spans: readonly (readonly [number, number])[]) =>
  spans.reduce<ReturnType<typeof withSeen>>((seen, span) => withSeen(seen, span), []);

describe('what has been in view', () => {
  it('is whole once its parts leave no gap, in whatever order they came', () => {
    expect(isWhole(collectSeen([[0, 400]]), 400)).toBe(true);
    expect(isWhole(collectSeen([[0, 400]]), 900)).toBe(false);
    // To the end at once: the middle was never in view.
    const jumped = collectSeen([
      [0, 400],
      [500, 900],
    ]);
    expect(isWhole(jumped, 900)).toBe(false);
    expect(isWhole(withSeen(jumped, [390, 510]), 900)).toBe(true);
    expect(isWhole(collectSeen([[300, 100]]), 200)).toBe(false);
  });

  it('is whole exactly when every line of it was in one of its parts', () => {
    const span = fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 40 }));
    fc.assert(
      fc.property(fc.array(span), (spans) => {
        const lines = Array.from({ length: 20 }, (_, at) => 2 + at * 2);
        const all = lines.every((line) => spans.some(([from, to]) => from <= line - 2 && line <= to));
        // A line may lie across two parts that touch: then it counts as seen too.
        if (all) expect(isWhole(collectSeen(spans), 40)).toBe(true);
        const gap = Array.from({ length: 40 }, (_, at) => at + 0.5).some(
          (at) => at > 1 && at < 39 && !spans.some(([from, to]) => from < at && at < to),
        );
        if (gap) expect(isWhole(collectSeen(spans), 40)).toBe(false);
      }),
    );
  });

  it('is only what stayed in view for a moment, at one height of the whole', () => {
    const window = 400;
    const past = (by: number, height = 2_000) => {
      const reading = new Reading();
      let now = 0;
      for (let stays = 0; stays < 5; stays += 1) reading.look([0, window], height, (now += 100));
      for (let top = 0; top < height - window; top += by)
        reading.look([top, top + window], height, (now += 100));
      for (let stays = 0; stays < 5; stays += 1)
        reading.look([height - window, height], height, (now += 100));
      return reading;
    };
    // Parts of a hundred pixels at a time stay for three looks and more; those of four hundred for one.
    expect(past(50).isDone()).toBe(true);
    expect(past(400).isDone()).toBe(false);
    const reading = new Reading();
    for (const now of [0, 100, 200, 299]) reading.look([0, 400], 400, now);
    expect(reading.isDone()).toBe(false);
    reading.look([0, 400], 400, 300);
    expect(reading.isDone()).toBe(true);
    reading.look([0, 400], 500, 700);
    reading.look([0, 400], 500, 1_100);
    expect(reading.isDone()).toBe(false);
  });
});

describe('buttons', () => {
  it('are in view up to a fraction of a pixel, and where they are higher than the window once they fill it', () => {
    expect(isInView([700, 740], [0, 800])).toBe(true);
    expect(isInView([760.4, 800.4], [0, 800])).toBe(true);
    expect(isInView([764, 804], [0, 800])).toBe(false);
    expect(isInView([50, 90], [60, 800])).toBe(false);
    expect(isInView([810, 850], [0, 800])).toBe(false);
    expect(isInView([-20, 140], [0, 100])).toBe(true);
    expect(isInView([20, 180], [0, 100])).toBe(false);
  });
});
