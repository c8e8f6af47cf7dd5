/** A value at a moment, in milliseconds since 1970 UTC. */
export interface Sample {
  readonly at: number;
  readonly value: number;
}

/** How exact the key of a group by date is. */
export type Precision = 'year' | 'quarter' | 'month' | 'week' | 'day' | 'hour' | 'minute' | 'second';

export interface Moment {
  readonly at: number;
  readonly precision: Precision;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const KEY =
  /^(\d{4})(?:-Q([1-4])|-W(\d{2})|-(\d{2})(?:-(\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?Z?)?)?)?$/;

/**
 * The moment that a key of `group_by_date` begins at, read as UTC; null for any other text. Weeks begin on Sunday and
 * count from 0, as the tool counts them.
 */
export function parseMoment(key: string): Moment | null {
  const [, year, quarter, week, month, day, hour, minute, second] = KEY.exec(key) ?? [];
  if (year === undefined) return null;
  const date = (monthAt = 0, dayOf = 1, ...time: number[]) => {
    const at = new Date(0);
    at.setUTCFullYear(Number(year), monthAt, dayOf);
    return at.getTime() + (time[0] ?? 0) * HOUR + (time[1] ?? 0) * MINUTE + (time[2] ?? 0) * 1000;
  };
  if (quarter) return { at: date((Number(quarter) - 1) * 3), precision: 'quarter' };
  if (week) {
    const firstSunday = 1 + ((7 - new Date(date()).getUTCDay()) % 7);
    const dayOf = week === '00' ? 1 : firstSunday + (Number(week) - 1) * 7;
    return { at: date(0, dayOf), precision: 'week' };
  }
  if (!month) return { at: date(), precision: 'year' };
  if (Number(month) < 1 || Number(month) > 12) return null;
  if (!day) return { at: date(Number(month) - 1), precision: 'month' };
  const at = date(
    Number(month) - 1,
    Number(day),
    Number(hour ?? 0),
    Number(minute ?? 0),
    Number(second ?? 0),
  );
  const precision = second ? 'second' : !hour ? 'day' : minute === '00' ? 'hour' : 'minute';
  return new Date(at).getUTCMonth() === Number(month) - 1 ? { at, precision } : null;
}

/**
 * At most `most` of the samples, chosen by largest-triangle-three-buckets: the sample of each bucket that stands out most
 * from its neighbours. The first, the last, the least and the greatest sample are always among them, in order.
 */
export function downsample<T extends Sample>(samples: readonly T[], most: number): readonly T[] {
  if (samples.length <= most || most < 4) return samples;
  const last = samples.length - 1;
  const chosen = new Set([0, last, extreme(samples, -1), extreme(samples, 1)]);
  const buckets = most - chosen.size;
  const width = (last - 1) / buckets;
  let before = samples[0] as T;
  for (let bucket = 0; bucket < buckets; bucket += 1) {
    const [from, to] = [1 + Math.floor(bucket * width), 1 + Math.floor((bucket + 1) * width)];
    const after = mean(samples, to, Math.min(last + 1, 1 + Math.floor((bucket + 2) * width)));
    let [best, largest] = [from, -1];
    for (let index = from; index < to; index += 1) {
      const area = triangle(before, samples[index] as T, after);
      if (area > largest) [best, largest] = [index, area];
    }
    chosen.add(best);
    before = samples[best] as T;
  }
  return samples.filter((_, index) => chosen.has(index));
}

/** The least and the greatest value. */
export function extent(values: readonly number[]): [number, number] {
  return [
    values.reduce((a, b) => Math.min(a, b), Infinity),
    values.reduce((a, b) => Math.max(a, b), -Infinity),
  ];
}

/** The index of the least (-1) or greatest (1) value. */
function extreme(samples: readonly Sample[], sign: 1 | -1): number {
  return samples.reduce(
    (best, { value }, index) => (value * sign > (samples[best]?.value ?? 0) * sign ? index : best),
    0,
  );
}

function mean(samples: readonly Sample[], from: number, to: number): Sample {
  let [at, value] = [0, 0];
  for (let index = from; index < to; index += 1) {
    at += (samples[index]?.at ?? 0) / (to - from);
    value += (samples[index]?.value ?? 0) / (to - from);
  }
  return { at, value };
}

/** Twice the area, which compares the same. */
const triangle = (a: Sample, b: Sample, c: Sample): number =>
  Math.abs((a.at - c.at) * (b.value - a.value) - (a.at - b.at) * (c.value - a.value));

/** Round values from at or below `low` to at or above `high`, a step of 1, 2 or 5 times a power of ten apart. */
export function roundTicks(low: number, high: number, steps = 4): readonly number[] {
  if (high <= low) return roundTicks(low, low + (Math.abs(low) || 1), steps);
  const range = high - low;
  const power = 10 ** Math.floor(Math.log10(range / steps));
  const step = ([1, 2, 5, 10].find((factor) => factor * power * steps >= range * (1 - 1e-9)) ?? 10) * power;
  if (!(step > 0 && Number.isFinite(step))) return [low, high];
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  // From the index, so that no error adds up: 0.3, not 0.30000000000000004.
  const digits = Math.min(100, Math.max(0, -Math.floor(Math.log10(step))));
  return Array.from({ length: last - first + 1 }, (_, index) =>
    Number(((first + index) * step).toFixed(digits)),
  );
}

/** A unit of the calendar, how many of it a step takes, and about how long that is. */
type CalendarStep = readonly ['second' | 'minute' | 'hour' | 'day' | 'month' | 'year', number, number];

const CALENDAR: readonly CalendarStep[] = [
  ...([1, 5, 15, 30] as const).map((count) => ['second', count, count * 1000] as const),
  ...([1, 5, 15, 30] as const).map((count) => ['minute', count, count * MINUTE] as const),
  ...([1, 3, 6, 12] as const).map((count) => ['hour', count, count * HOUR] as const),
  ...([1, 7, 14] as const).map((count) => ['day', count, count * DAY] as const),
  ...([1, 3, 6] as const).map((count) => ['month', count, count * 30 * DAY] as const),
  ...([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] as const).map(
    (count) => ['year', count, count * 365 * DAY] as const,
  ),
];

const LONGEST_STEP: Readonly<Record<Precision, number>> = {
  year: 366 * DAY,
  quarter: 92 * DAY,
  month: 31 * DAY,
  week: 7 * DAY,
  day: DAY,
  hour: HOUR,
  minute: MINUTE,
  second: 1000,
};

const SUNDAY = Date.UTC(1970, 0, 4);

export interface CalendarTicks {
  readonly unit: CalendarStep[0];
  readonly at: readonly number[];
}

/** Beginnings of calendar units between two moments, at most `most` of them and no finer than the samples. */
export function calendarTicks(from: number, to: number, most: number, finest: Precision): CalendarTicks {
  for (const [unit, count, length] of CALENDAR) {
    if (length < LONGEST_STEP[finest] * 0.9 || (to - from) / length > most + 1) continue;
    const at = unit === 'month' || unit === 'year' ? months(from, to, unit, count) : even(from, to, length);
    if (at.length <= most) return { unit, at };
  }
  return { unit: 'year', at: [] };
}

/** Weeks are counted from a Sunday, other steps from midnight. */
function even(from: number, to: number, length: number): number[] {
  const origin = length > DAY ? SUNDAY : 0;
  const first = Math.ceil((from - origin) / length);
  const count = Math.floor((to - origin) / length) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, index) => origin + (first + index) * length);
}

function months(from: number, to: number, unit: 'month' | 'year', count: number): number[] {
  const step = unit === 'year' ? count * 12 : count;
  const start = new Date(from);
  const found: number[] = [];
  for (
    let index = Math.floor((start.getUTCFullYear() * 12 + start.getUTCMonth()) / step) * step;
    ;
    index += step
  ) {
    const date = new Date(0);
    date.setUTCFullYear(Math.floor(index / 12), index % 12, 1);
    if (date.getTime() > to) return found;
    if (date.getTime() >= from) found.push(date.getTime());
  }
}

/** Whether a period lies between two neighbours that no sample stands for. */
export function isGap(before: Sample, after: Sample, precision: Precision): boolean {
  return after.at - before.at > LONGEST_STEP[precision];
}
