const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
});
const SHORT_CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false });
const DAY = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const EXACT_TIME = new Intl.DateTimeFormat(undefined, {
  dateStyle: 'full',
  timeStyle: 'long',
  hour12: false,
});
const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** Date and time to the second. A text that is no time is returned as it is. */
export function formatTime(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? iso : `${DAY.format(at)}, ${CLOCK.format(at)}`;
}

/** The same without the date of today. */
export function formatRecentTime(iso: string, now = new Date()): string {
  const at = new Date(iso);
  return at.toDateString() === now.toDateString() ? CLOCK.format(at) : formatTime(iso);
}

/** With weekday, year and time zone. */
export function exactTime(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? iso : EXACT_TIME.format(at);
}

/** A time of the address as an input of this browser shows it. */
export function toLocalTime(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function formatClock(at: Date): string {
  return SHORT_CLOCK.format(at);
}

export function formatDay(at: Date): string {
  return DAY.format(at);
}

/** How long until then, in words. */
export function timeUntil(iso: string, now = Date.now()): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1000);
  if (Number.isNaN(seconds)) return iso;
  return seconds <= 0 ? 'ended' : formatDuration(seconds);
}

/** How long ago that was, in words. */
export function timeSince(iso: string, now = Date.now()): string {
  const seconds = Math.round((now - Date.parse(iso)) / 1000);
  if (Number.isNaN(seconds)) return iso;
  return seconds < 5 ? 'now' : `${formatDuration(seconds)} ago`;
}

/** Seconds as one number with a unit. */
function formatDuration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}

export function formatMilliseconds(value: number | null): string {
  if (value === null) return '–';
  if (value >= 10_000) return `${NUMBER.format(value / 1000)} s`;
  return `${value >= 100 ? Math.round(value).toLocaleString('en') : NUMBER.format(value)} ms`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${Math.round(bytes)} bytes`;
  return bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} KB` : `${Math.round(bytes / 1024 / 1024)} MB`;
}

export function formatNumber(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 1 });
}

/** At most four characters and a unit: 1.2K, 3.4M. */
export function shortNumber(value: number): string {
  return Math.abs(value) < 10_000 ? formatNumber(value) : COMPACT.format(value);
}

/** Dollars; small sums with the digits that tell them apart. */
export function formatCost(dollars: number): string {
  const digits = dollars >= 1 || dollars === 0 ? 2 : 2 - Math.max(-4, Math.floor(Math.log10(dollars)));
  return `$${dollars.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: digits })}`;
}

/** `1 call`, `2 calls`. */
export function formatCount(count: number, one: string, several = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : several}`;
}

/** Names as a line; an empty list is said. */
export function names(list: readonly string[] | null | undefined, none = 'none'): string {
  return !list || list.length === 0 ? none : list.join(', ');
}

/** Any value of a record as one line. */
export function valueText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return value.map(valueText).join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value as number | boolean);
}
