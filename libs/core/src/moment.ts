/** Other texts `Date` reads as well, each in a way of its own: `1` is a month, and a time without its zone is another one on each machine. */
const MOMENT = /^(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d))?$/i;

/** Texts of years beyond have another order. */
const FIRST_MOMENT = Date.parse('0000-01-01T00:00:00.000Z');
export const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z');

/** What `readMoment` reads. */
export const MOMENT_RULE = 'a date (2027-01-31) or a time with its zone (2027-01-31T18:00:00Z)';

/** Milliseconds since 1970; a date is its beginning in UTC. Null for everything else. */
export function readMoment(text: string): number | null {
  const day = MOMENT.exec(text)?.[1];
  const time = day !== undefined && isDay(day) ? Date.parse(text.replace(' ', 'T')) : Number.NaN;
  // NaN is outside as well.
  return time >= FIRST_MOMENT && time <= LAST_MOMENT ? time : null;
}

/** `Date` takes 30 February for 2 March. */
function isDay(day: string): boolean {
  const time = Date.parse(day);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day);
}
