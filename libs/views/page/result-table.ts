import { parseMoment, type Precision, type Sample } from './series.js';
import { isRow, type Row } from './values.js';

/** A result as a table. */
export interface ResultTable {
  readonly title: string;
  /** Below the title: how many rows there are, and what was cut. */
  readonly notes: readonly string[];
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  /** Present when each row is a label and a number. */
  readonly chart?: Chart;
  /** The keys of groups by date are in this zone. */
  readonly keyZone?: string;
}

export interface Point extends Sample {
  /** The key of its group. */
  readonly label: string;
}

export interface Chart {
  /** `line`: the labels are points in time, in order. `at` counts the points of a `bar`. */
  readonly kind: 'bar' | 'line';
  readonly points: readonly Point[];
  /** Of a `line`: the most exact of its keys. */
  readonly precision: Precision;
  readonly notes: readonly string[];
}

/** A call without a result. Its members are text of the server. */
export interface Failure {
  readonly message: string;
  readonly code?: string;
  readonly advice: readonly string[];
  /** Names that may be used instead. */
  readonly allowed: readonly string[];
}

/** Bounds of what is drawn; a file of the rows has all of them. */
export const MAX_ROWS = 1000;
export const MAX_COLUMNS = 40;
const MAX_BARS = 40;
/** Larger numbers have no round axis. */
const MAX_NUMBER = 1e300;
const DATE_GROUP = 'null';

const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** The first text of a result's content. */
function readContentText(result: unknown): string | undefined {
  const content = isRow(result) ? result['content'] : undefined;
  const [first] = Array.isArray(content) ? (content as unknown[]) : [];
  return isRow(first) ? textIn(first['text']) : undefined;
}

/** The data of a tool's result: structured, else its text. */
export function readData(result: unknown): Row | null {
  if (!isRow(result)) return null;
  if (isRow(result['structuredContent'])) return result['structuredContent'];
  return objectIn(readContentText(result));
}

function objectIn(text = ''): Row | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return isRow(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

/** The text of a result, or else its data, for a person: JSON with indentation. */
export function readableText(result: unknown): string {
  const text = readContentText(result);
  const data = text === undefined ? readData(result) : objectIn(text);
  return data ? JSON.stringify(data, null, 2) : (text ?? 'The result is empty.');
}

/** @returns null for a call that did not fail */
export function readFailure(result: unknown): Failure | null {
  if (!isRow(result) || result['isError'] !== true) return null;
  const body = readData(result) ?? {};
  const meta = isRow(result['_meta']) ? result['_meta'] : {};
  const details = isRow(meta['parse.details']) ? meta['parse.details'] : {};
  const seconds = meta['parse.retry_after'];
  const rewrite = textIn(details['suggested_rewrite']) ?? textIn(body['suggestion']);
  const code = textIn(meta['parse.error_code']) ?? textIn(body['error_code']);
  const { allowed_fields: allowed } = details;
  return {
    message: textIn(body['error']) ?? readContentText(result) ?? 'The server gave no reason.',
    ...(code !== undefined && { code }),
    advice: [
      ...(rewrite === undefined ? [] : [`Instead: ${rewrite}`]),
      ...(typeof seconds === 'number' ? [`It may succeed again in ${seconds} s.`] : []),
      ...(details['outcome'] === 'unknown'
        ? ['It is unknown whether the change was made: look before trying again.']
        : []),
    ],
    allowed: Array.isArray(allowed) ? allowed.filter((name) => typeof name === 'string') : [],
  };
}

/** @returns null for a result without rows, which is shown as text */
export function readResult(data: Row): ResultTable | null {
  const listed = data['groups'] ?? data['results'];
  if (!Array.isArray(listed)) return null;
  const rows = listed.filter(isRow);
  const members = listColumns(rows);
  // Rows of a class get no chart: a number in them is not an aggregate.
  const grouped = data['groups'] !== undefined || members[0] === '_id';
  const chart = grouped ? toChart(rows, members) : null;
  return {
    title: buildTitle(data),
    notes: buildNotes(data, rows.length, members.length),
    columns: members.map((member) => columnName(member, data)),
    rows: rows.map((row) => members.map((member) => row[member])),
    ...(chart && { chart }),
    ...(chart?.kind === 'line' && { keyZone: textIn(data['timezone']) ?? 'UTC' }),
  };
}

function listColumns(rows: readonly Row[]): string[] {
  const columns = new Set<string>();
  for (const row of rows) for (const name of Object.keys(row)) columns.add(name);
  return [...columns];
}

/** Groups have `key` and `value`: their columns are named for what was asked. */
function columnName(member: string, data: Row): string {
  const { groups, field, pointer_class: pointed } = data;
  if (groups === undefined || typeof field !== 'string') return member;
  if (member === 'value') return describeMeasure(data) ?? member;
  if (member !== 'key') return member;
  return typeof pointed === 'string' ? `${field} (${pointed})` : field;
}

/** `count`, `sum of likes`. */
function describeMeasure({ operation, value_field: column }: Row): string | undefined {
  if (typeof operation !== 'string') return undefined;
  return typeof column === 'string' ? `${operation} of ${column}` : operation;
}

function buildTitle(data: Row): string {
  const { class_name: className, field, interval } = data;
  const subject = typeof className === 'string' ? className : 'Results';
  const measure = describeMeasure(data);
  if (measure === undefined || typeof field !== 'string') return subject;
  return `${subject}: ${measure} by ${field}${typeof interval === 'string' ? ` (${interval})` : ''}`;
}

function buildNotes(data: Row, listed: number, columns: number): string[] {
  const what = data['groups'] === undefined ? 'row' : 'group';
  const { pagination, truncated_note: note, truncated_include_fields: left, _truncated: cut } = data;
  const more = data['truncated'] === true || (isRow(pagination) && pagination['has_more'] === true);
  const counted = `${listed} ${what}${listed === 1 ? '' : 's'}`;
  return [
    more ? `${counted}, there are more` : counted,
    ...(listed > MAX_ROWS ? [`the table has the first ${MAX_ROWS}`] : []),
    ...(columns > MAX_COLUMNS ? [`the first ${MAX_COLUMNS} of ${columns} columns`] : []),
    ...(typeof note === 'string' ? [note] : []),
    ...(isRow(cut) && Array.isArray(cut['dropped_fields']) && cut['dropped_fields'].length > 0
      ? [`left out for size: ${cut['dropped_fields'].join(', ')}`]
      : []),
    ...(isRow(left)
      ? Object.entries(left).map(
          ([field, names]) => `${field} without ${String(names).replaceAll(',', ', ')}`,
        )
      : []),
  ];
}

function toChart(rows: readonly Row[], [label, value, ...others]: readonly string[]): Chart | null {
  if (label === undefined || value === undefined || others.length > 0 || rows.length < 2) return null;
  const points: Point[] = [];
  let empty = 0;
  for (const row of rows) {
    const size = row[value];
    // A group without any number, such as the average of nothing, has no place in a chart.
    if (size === null) empty += 1;
    else if (typeof size !== 'number' || Math.abs(size) > MAX_NUMBER) return null;
    else points.push({ label: toLabel(row[label]), at: points.length, value: size });
  }
  if (points.length < 2) return null;
  const notes = empty === 0 ? [] : [`${empty} without a value`];
  return toLineChart(points, notes) ?? toBarChart(points, notes);
}

const toLabel = (key: unknown): string => (typeof key === 'string' ? key : JSON.stringify(key ?? null));

/** @returns null where a label is no point in time. Rows that have no date are said, not drawn */
function toLineChart(points: readonly Point[], notes: readonly string[]): Chart | null {
  const dated = points.filter(({ label }) => label !== DATE_GROUP);
  const moments = dated.map(({ label }) => parseMoment(label));
  if (dated.length < 2 || moments.includes(null)) return null;
  const samples = dated.map((point, index) => ({ ...point, at: moments[index]?.at ?? 0 }));
  const undated = points.length - dated.length;
  return {
    kind: 'line',
    points: samples.sort((a, b) => a.at - b.at),
    precision:
      ORDER[Math.max(...moments.map((moment) => ORDER.indexOf(moment?.precision ?? 'year')))] ?? 'day',
    notes: [...notes, ...(undated > 0 ? ['one group without a date is not drawn'] : [])],
  };
}

/** Coarsest first. */
const ORDER: readonly Precision[] = ['year', 'quarter', 'month', 'week', 'day', 'hour', 'minute', 'second'];

/** The greatest bars, in the order of the result. */
function toBarChart(points: readonly Point[], notes: readonly string[]): Chart {
  const shape = { kind: 'bar', precision: 'year' } as const;
  if (points.length <= MAX_BARS) return { ...shape, points, notes };
  const greatest = new Set(
    [...points].sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, MAX_BARS),
  );
  return {
    ...shape,
    points: points.filter((point) => greatest.has(point)),
    notes: [...notes, `the ${MAX_BARS} greatest of ${points.length} are drawn`],
  };
}
