export const INTERVALS = ['year', 'month', 'week', 'day', 'hour', 'minute', 'second'] as const;
export type Interval = (typeof INTERVALS)[number];

type Part = 'year' | 'month' | 'week' | 'day' | 'hour' | 'minute' | 'second';

/** The parts of an interval's key, coarsest first. Weeks begin on Sunday and count from 0. */
const PARTS: Readonly<Record<Interval, readonly Part[]>> = {
  year: ['year'],
  month: ['year', 'month'],
  week: ['year', 'week'],
  day: ['year', 'month', 'day'],
  hour: ['year', 'month', 'day', 'hour'],
  minute: ['year', 'month', 'day', 'hour', 'minute'],
  second: ['year', 'month', 'day', 'hour', 'minute', 'second'],
};

const OPERATORS: Readonly<Record<Part, string>> = {
  year: '$year',
  month: '$month',
  week: '$week',
  day: '$dayOfMonth',
  hour: '$hour',
  minute: '$minute',
  second: '$second',
};

/** What stands in front of a part in a key. */
const SEPARATORS: Readonly<Record<Part, string>> = {
  year: '',
  month: '-',
  week: '-W',
  day: '-',
  hour: ' ',
  minute: ':',
  second: ':',
};

/**
 * The group id of an interval. Anything but a date counts as no date: the database would give up the whole
 * pipeline over the first text it meets.
 */
export function dateGroupId(reference: string, interval: Interval, timezone: string | undefined): unknown {
  const date = { $cond: [{ $eq: [{ $type: reference }, 'date'] }, reference, null] };
  const operand = timezone === undefined ? date : { date, timezone };
  const part = (name: Part) => ({ [OPERATORS[name]]: operand });
  if (interval === 'year') return part('year');
  return Object.fromEntries(PARTS[interval].map((name) => [name, part(name)]));
}

const padded = (name: Part, value: number): string => String(value).padStart(name === 'year' ? 4 : 2, '0');

/** The text of a group id, null when a part of it is missing. */
export function dateKey(id: unknown, interval: Interval): string | null {
  const parts = interval === 'year' ? { year: id } : id;
  if (parts === null || typeof parts !== 'object') return null;
  let key = '';
  for (const name of PARTS[interval]) {
    const value = (parts as Partial<Record<Part, unknown>>)[name];
    if (typeof value !== 'number') return null;
    key += SEPARATORS[name] + padded(name, value);
  }
  return interval === 'hour' ? `${key}:00` : key;
}
