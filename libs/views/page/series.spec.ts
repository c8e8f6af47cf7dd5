import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { calendarTicks, downsample, isGap, parseMoment, roundTicks, type Sample } from './series.js';

const samples = fc
  .array(fc.record({ at: fc.nat(10_000_000), value: fc.double({ noNaN: true, min: -1e9, max: 1e9 }) }), {
    maxLength: 400,
  })
  .map((drawn) => drawn.sort((a, b) => a.at - b.at));

describe('a downsampled series', () => {
  it('never invents, repeats or reorders a sample', () => {
    fc.assert(
      fc.property(samples, fc.integer({ min: 4, max: 120 }), (series, most) => {
        const kept = downsample(series, most);
        const places = kept.map((sample) => series.indexOf(sample));
        expect(places).not.toContain(-1);
        expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
      }),
    );
  });

  it('never has more samples than asked for, nor fewer than it could have', () => {
    fc.assert(
      fc.property(samples, fc.integer({ min: 4, max: 120 }), (series, most) => {
        const kept = downsample(series, most);
        expect(kept.length).toBeLessThanOrEqual(most);
        if (series.length <= most) expect(kept).toEqual(series);
        else expect(kept.length).toBeGreaterThanOrEqual(Math.floor(most / 2));
      }),
    );
  });

  it('never loses the first, the last, the least or the greatest', () => {
    fc.assert(
      fc.property(
        samples.filter(({ length }) => length > 0),
        fc.integer({ min: 4, max: 120 }),
        (series, most) => {
          const kept = downsample(series, most);
          const values = (list: readonly Sample[]) => list.map(({ value }) => value);
          expect([kept[0], kept.at(-1)]).toEqual([series[0], series.at(-1)]);
          expect(Math.min(...values(kept))).toBe(Math.min(...values(series)));
          expect(Math.max(...values(kept))).toBe(Math.max(...values(series)));
        },
      ),
    );
  });

  it('keeps each of several peaks', () => {
    const series = Array.from({ length: 3_000 }, (_, at) => ({
      at,
      value: at % 500 === 250 ? 100 + at / 100 : Math.sin(at),
    }));
    const peaks = downsample(series, 200).filter(({ value }) => value >= 100);
    expect(peaks).toHaveLength(6);
  });
});

describe('ticks of values', () => {
  it.each([
    [0, 7, [0, 2, 4, 6, 8]],
    [0, 1, [0, 0.5, 1]],
    [0, 0.3, [0, 0.1, 0.2, 0.3]],
    [-3, 12, [-5, 0, 5, 10, 15]],
    [987, 1004, [985, 990, 995, 1000, 1005]],
    [0, 0, [0, 0.5, 1]],
  ])('from %d to %d are %j', (low, high, ticks) => {
    expect(roundTicks(low, high)).toEqual(ticks);
  });

  it('are always a step of 1, 2 or 5 apart, few, and around all values', () => {
    const value = fc.double({ noNaN: true, min: -1e12, max: 1e12 });
    fc.assert(
      fc.property(value, value, (a, b) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        fc.pre(high - low > 1e-6 * Math.max(Math.abs(low), Math.abs(high)) && high - low > 1e-9);
        const ticks = roundTicks(low, high);
        const step = (ticks[1] ?? 0) - (ticks[0] ?? 0);
        expect(ticks.length).toBeLessThanOrEqual(7);
        const leading = Number(step.toExponential(3).split('e')[0]);
        expect([1, 2, 5]).toContain(leading);
        const tolerance = 1e-6 * step;
        expect(ticks[0]).toBeLessThanOrEqual(low + tolerance);
        expect(ticks.at(-1)).toBeGreaterThanOrEqual(high - tolerance);
      }),
    );
  });
});

describe('ticks of time', () => {
  const iso = ({ at }: { at: readonly number[] }) =>
    at.map((tick) => new Date(tick).toISOString().slice(0, 16));

  it('begin months, days and hours', () => {
    const year = calendarTicks(Date.UTC(2025, 0, 9), Date.UTC(2026, 0, 8), 6, 'day');
    expect(year).toMatchObject({ unit: 'month' });
    expect(iso(year)).toEqual([
      '2025-04-01T00:00',
      '2025-07-01T00:00',
      '2025-10-01T00:00',
      '2026-01-01T00:00',
    ]);
    const day = calendarTicks(Date.UTC(2025, 0, 9, 1), Date.UTC(2025, 0, 9, 23), 5, 'hour');
    expect(iso(day)).toEqual(['2025-01-09T06:00', '2025-01-09T12:00', '2025-01-09T18:00']);
  });

  it('are no finer than the samples', () => {
    expect(iso(calendarTicks(Date.UTC(2025, 0, 1), Date.UTC(2025, 0, 3), 10, 'day'))).toHaveLength(3);
    expect(calendarTicks(Date.UTC(2025, 0, 1), Date.UTC(2025, 2, 1), 10, 'month').unit).toBe('month');
  });

  it('are never more than asked for, and never outside', () => {
    const moment = fc.integer({ min: Date.UTC(1800, 0, 1), max: Date.UTC(2200, 0, 1) });
    fc.assert(
      fc.property(moment, moment, fc.integer({ min: 2, max: 12 }), (a, b, most) => {
        const [from, to] = [Math.min(a, b), Math.max(a, b)];
        const { at } = calendarTicks(from, to, most, 'second');
        expect(at.length).toBeLessThanOrEqual(most);
        expect(at.every((tick) => tick >= from && tick <= to)).toBe(true);
      }),
    );
  });
});

describe('the moment of a key', () => {
  it.each([
    ['2025', '2025-01-01T00:00', 'year'],
    ['2025-Q3', '2025-07-01T00:00', 'quarter'],
    ['2025-03', '2025-03-01T00:00', 'month'],
    ['2025-W00', '2025-01-01T00:00', 'week'],
    ['2025-W01', '2025-01-05T00:00', 'week'],
    ['2025-03-09', '2025-03-09T00:00', 'day'],
    ['2025-03-09 21:00', '2025-03-09T21:00', 'hour'],
    ['2025-03-09 21:07', '2025-03-09T21:07', 'minute'],
    ['2025-03-09 21:07:30', '2025-03-09T21:07', 'second'],
  ])('%s begins at %s', (key, at, precision) => {
    expect(new Date(parseMoment(key)?.at ?? 0).toISOString().slice(0, 16)).toBe(at);
    expect(parseMoment(key)?.precision).toBe(precision);
  });

  it.each(['null', 'rock', '2025-13', '2025-02-30', '12', '20251', '2025-W1'])('%s is none', (key) => {
    expect(parseMoment(key)).toBeNull();
  });

  it('has a gap before it where a period is left out', () => {
    const at = (key: string) => ({ at: parseMoment(key)?.at ?? 0, value: 0 });
    expect(isGap(at('2025-01-31'), at('2025-02-01'), 'day')).toBe(false);
    expect(isGap(at('2025-01-31'), at('2025-02-02'), 'day')).toBe(true);
    expect(isGap(at('2025-01'), at('2025-02'), 'month')).toBe(false);
    expect(isGap(at('2025-01'), at('2025-03'), 'month')).toBe(true);
  });
});
