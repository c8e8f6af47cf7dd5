/** A result as a table. */
export interface ResultTable {
  readonly title: string;
  /** Below the title: the shown and total count. */
  readonly note: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  /** Present when each row is a label and a number. */
  readonly chart?: Chart;
}

export interface Chart {
  /** `line`: the labels are points in time, in order. */
  readonly kind: 'bar' | 'line';
  readonly points: readonly { readonly label: string; readonly value: number }[];
}

type Row = Readonly<Record<string, unknown>>;

/** Maximum drawn rows: the page stays fast, and the text of the result has all of them. */
const MAX_ROWS = 1000;
const MAX_COLUMNS = 40;
const MAX_POINTS = 60;
const POINT_IN_TIME = /^\d{4}(-\d{2}(-\d{2}(T.*)?)?|-W\d{2}|-Q\d)?$/;

const isRow = (value: unknown): value is Row =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** The data of a tool's result: structured, else its text. */
export function dataOf(result: unknown): Row | null {
  if (!isRow(result)) return null;
  if (isRow(result['structuredContent'])) return result['structuredContent'];
  const content = result['content'];
  const [first] = Array.isArray(content) ? (content as unknown[]) : [];
  const text = isRow(first) ? first['text'] : undefined;
  if (typeof text !== 'string') return null;
  try {
    const parsed: unknown = JSON.parse(text);
    return isRow(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

/** @returns null for a result without rows, which is shown as text */
export function readResult(data: Row): ResultTable | null {
  const listed = data['groups'] ?? data['results'];
  if (!Array.isArray(listed)) return null;
  const rows = listed.filter(isRow).slice(0, MAX_ROWS);
  const columns = columnsOf(rows);
  // Rows of a class get no chart: a number in them is not an aggregate.
  const grouped = data['groups'] !== undefined || columns[0] === '_id';
  const chart = grouped ? chartOf(rows, columns) : null;
  return {
    title: titleOf(data),
    note: noteOf(data, listed.length, rows.length),
    columns,
    rows: rows.map((row) => columns.map((column) => row[column])),
    ...(chart && { chart }),
  };
}

function columnsOf(rows: readonly Row[]): string[] {
  const columns = new Set<string>();
  for (const row of rows) for (const name of Object.keys(row)) columns.add(name);
  return [...columns].slice(0, MAX_COLUMNS);
}

function titleOf({ class_name: className, operation, field, interval }: Row): string {
  const subject = typeof className === 'string' ? className : 'Results';
  if (typeof operation !== 'string' || typeof field !== 'string') return subject;
  const by = typeof interval === 'string' ? `${field} (${interval})` : field;
  return `${subject}: ${operation} by ${by}`;
}

function noteOf(data: Row, listed: number, shown: number): string {
  const counted = `${shown} ${shown === 1 ? 'row' : 'rows'}`;
  const pagination = data['pagination'];
  const more = isRow(pagination) && pagination['has_more'] === true;
  if (shown < listed) return `${counted} of ${listed} shown`;
  if (data['truncated'] === true) return `${counted}, cut to fit`;
  return more ? `${counted}, there are more` : counted;
}

function chartOf(rows: readonly Row[], columns: readonly string[]): Chart | null {
  const [label, value, ...others] = columns;
  if (label === undefined || value === undefined || others.length > 0) return null;
  if (rows.length < 2 || rows.length > MAX_POINTS) return null;
  const points = rows.map((row) => ({ label: shown(row[label]), value: row[value] }));
  if (!points.every((point): point is { label: string; value: number } => typeof point.value === 'number'))
    return null;
  const inTime = points.every((point) => POINT_IN_TIME.test(point.label));
  return { kind: inTime ? 'line' : 'bar', points };
}

/** One value as text. Directional marks, which can reorder adjacent text, are shown as escapes. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return '—';
  const text = typeof value === 'string' ? value : isRow(value) ? ofObject(value) : JSON.stringify(value);
  return text.replaceAll(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (mark) => `\\u${mark.codePointAt(0)?.toString(16).padStart(4, '0')}`,
  );
}

/** Pointers and files by their names, other values as JSON. */
function ofObject(value: Row): string {
  const { _type: kind, class: className, id, name, iso } = value;
  if (kind === 'Pointer') return `${String(className)} ${String(id)}`;
  if (kind === 'File') return String(name);
  if (typeof iso === 'string') return iso;
  return JSON.stringify(value);
}

/** Compares numbers by size and other values by text; missing values come last in both directions. */
export function compare(a: unknown, b: unknown, direction: 1 | -1): number {
  const missing = Number(a === null || a === undefined) - Number(b === null || b === undefined);
  if (missing !== 0) return missing;
  if (typeof a === 'number' && typeof b === 'number') return (a - b) * direction;
  return shown(a).localeCompare(shown(b), undefined, { numeric: true }) * direction;
}
