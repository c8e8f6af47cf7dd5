import { cutText, withHiddenWritten } from '../../core/src/text.js';
import { parseMoment, type Precision } from './series.js';

export type Row = Readonly<Record<string, unknown>>;

export const isRow = (value: unknown): value is Row =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Characters of one value that are shown. */
const MAX_CHARACTERS = 5_000;
/** A date in the answer of a tool. */
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
const MIDNIGHT = /T00:00:00(\.0+)?Z$/;
const ON_THE_MINUTE = /T\d{2}:\d{2}:00(\.0+)?(Z|[+-])/;
/** Members that name an object to people. */
const NAMES = ['name', 'title', 'label', 'username'];

/** How a column is written: the same for all its values. */
export type ColumnFormat = 'value' | 'number' | 'grouped' | 'day' | 'minute' | 'second';

/** Text of strangers to look at: marks that hide or reorder text are written out, and what is too long is cut. */
export function visible(text: string): string {
  const cut =
    text.length > MAX_CHARACTERS ? `${cutText(text, MAX_CHARACTERS)}… (${text.length} characters)` : text;
  return withHiddenWritten(cut);
}

const isInstant = (value: unknown): value is string =>
  typeof value === 'string' && INSTANT.test(value) && !Number.isNaN(Date.parse(value));

/** From here on digits need groups to be read; a smaller number may be a year. */
const MIN_GROUPED_NUMBER = 10_000;

/** Dates where all are midnight in UTC are days; a column of dates and other values is written value by value. */
export function chooseFormat(values: readonly unknown[]): ColumnFormat {
  const present = values.filter((value) => value !== null && value !== undefined).map(plain);
  if (present.length === 0) return 'value';
  if (present.every((value) => typeof value === 'number'))
    return present.some((value) => Math.abs(value) >= MIN_GROUPED_NUMBER) ? 'grouped' : 'number';
  if (!present.every(isInstant)) return 'value';
  if (present.every((value) => MIDNIGHT.test(value))) return 'day';
  return present.every((value) => ON_THE_MINUTE.test(value)) ? 'minute' : 'second';
}

/** The instant of `{ __type: 'Date', iso }`; any other value as it is. */
const plain = (value: unknown): unknown =>
  isRow(value) && typeof value['iso'] === 'string' ? value['iso'] : value;

/** Writes values the way the reader is used to: language and time zone of the host, else of the browser. */
export class Formats {
  readonly locale: string | undefined;
  readonly timeZone: string;
  private readonly numbers: Intl.NumberFormat;
  private readonly grouped: Intl.NumberFormat;
  private readonly compact: Intl.NumberFormat;

  constructor(locale?: unknown, timeZone?: unknown) {
    this.locale = usable(() => Intl.getCanonicalLocales(String(locale))[0], locale);
    this.timeZone =
      usable(
        () => new Intl.DateTimeFormat('en', { timeZone: String(timeZone) }).resolvedOptions().timeZone,
        timeZone,
      ) ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
    this.grouped = new Intl.NumberFormat(this.locale, { maximumFractionDigits: 6 });
    this.numbers = new Intl.NumberFormat(this.locale, { maximumFractionDigits: 6, useGrouping: false });
    this.compact = new Intl.NumberFormat(this.locale, { notation: 'compact', maximumFractionDigits: 3 });
  }

  /** Digits in groups where any of the numbers beside it needs them. */
  number(value: number, grouped = Math.abs(value) >= MIN_GROUPED_NUMBER): string {
    if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e15)) return String(value);
    return (grouped ? this.grouped : this.numbers).format(value);
  }

  /** For the ticks of an axis. */
  short(value: number): string {
    return Math.abs(value) < MIN_GROUPED_NUMBER ? this.number(value) : this.compact.format(value);
  }

  instant(iso: string, format: ColumnFormat = 'second'): string {
    const day = format === 'day';
    const options = day ? {} : ({ timeStyle: format === 'minute' ? 'short' : 'medium' } as const);
    return this.date(Date.parse(iso), { dateStyle: 'medium', ...options }, day ? 'UTC' : this.timeZone);
  }

  date(at: number, options: Intl.DateTimeFormatOptions, timeZone = 'UTC'): string {
    return new Intl.DateTimeFormat(this.locale, { ...options, timeZone }).format(at);
  }

  /** The key of a group by date. It is in the zone that the tool grouped by, so it is not moved. */
  key(key: string): string {
    const moment = parseMoment(key);
    return moment === null || AS_WRITTEN.has(moment.precision)
      ? key
      : this.date(moment.at, KEYS[moment.precision]);
  }

  /** One value as text. */
  formatValue(value: unknown, format: ColumnFormat = 'value'): string {
    const known = plain(value);
    if (known === null || known === undefined) return '—';
    if (typeof known === 'number')
      return format === 'grouped' ? this.number(known, true) : this.number(known);
    if (isInstant(known)) return this.instant(known, format === 'value' ? 'second' : format);
    return visible(toText(known));
  }
}

/** Weeks and quarters have no form that all readers know. */
const AS_WRITTEN: ReadonlySet<Precision> = new Set(['year', 'quarter', 'week']);
const KEYS: Readonly<Record<Precision, Intl.DateTimeFormatOptions>> = {
  year: {},
  quarter: {},
  week: {},
  month: { year: 'numeric', month: 'short' },
  day: { dateStyle: 'medium' },
  hour: { dateStyle: 'medium', timeStyle: 'short' },
  minute: { dateStyle: 'medium', timeStyle: 'short' },
  second: { dateStyle: 'medium', timeStyle: 'medium' },
};

/** What a host sends may be no language and no zone. */
function usable<T>(read: () => T, given: unknown): T | undefined {
  if (typeof given !== 'string') return undefined;
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Objects, pointers and files by their names, short lists with commas, other values as JSON. */
function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.length > 0 && value.every((entry) => typeof entry !== 'object'))
    return value.join(', ');
  return isRow(value) ? objectText(value) : JSON.stringify(value);
}

function objectText(value: Row): string {
  const { _type: kind, class: className, id, objectId, name } = value;
  if (kind === 'Pointer') return `${String(className)} ${String(id)}`;
  if (kind === 'File') return String(name);
  if (kind === 'GeoPoint') return `${String(value['latitude'])}, ${String(value['longitude'])}`;
  if (kind === 'Relation') return `Relation to ${String(className)}`;
  if (value['__type'] !== 'Object') return JSON.stringify(value);
  const reference = `${String(value['className'])} ${String(objectId)}`;
  const named = NAMES.map((member) => value[member]).filter(
    (text) => typeof text === 'string' && text !== '',
  );
  return named.length === 0 ? reference : `${named[0] as string} (${reference})`;
}

/** Compares numbers by size and other values by text; missing values come last in both directions. */
export function compare(a: unknown, b: unknown, direction: 1 | -1): number {
  const missing = Number(a === null || a === undefined) - Number(b === null || b === undefined);
  if (missing !== 0) return missing;
  if (typeof a === 'number' && typeof b === 'number') return (a - b) * direction;
  return toText(plain(a)).localeCompare(toText(plain(b)), undefined, { numeric: true }) * direction;
}
