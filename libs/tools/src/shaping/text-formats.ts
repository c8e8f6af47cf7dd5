import { withoutHidden } from '#core';
import type { ParseRow } from '#data';
import { withoutFormulas } from './safe-text.js';

type Envelope = Readonly<Record<string, unknown>>;

/** The rows behind the text of a result: a text that is too large is written again from fewer of them. */
export interface TextOfRows {
  readonly rows: readonly ParseRow[];
  readonly columns: readonly TextColumn[];
  /** The result with the first rows alone, and how to go on. @param kept fewer than there are */
  build(kept: number): Envelope;
}

const behind = new WeakMap<object, TextOfRows>();

export function withTextOfRows<Result extends Envelope>(result: Result, text: TextOfRows): Result {
  behind.set(result, text);
  return result;
}

export const findTextOfRows = (result: object): TextOfRows | undefined => behind.get(result);

export const TEXT_FORMATS = ['csv', 'markdown', 'table'] as const;
export type TextFormat = (typeof TEXT_FORMATS)[number];

export interface TextColumn {
  readonly header: string;
  /** Dotted, through objects only. */
  readonly path: string;
}

export interface TextFormatOptions {
  /** CSV only: prefixes cells that a spreadsheet would run with `'`. Default false. */
  readonly neutralizeFormulas?: boolean;
}

const NOT_COLUMNS = new Set([
  '__type',
  'className',
  'ACL',
  '_rperm',
  '_wperm',
  '_hashed_password',
  '_session_token',
]);

/** The columns of the first row in its order, then those that only later rows have: no value of a row is left out. */
export function inferColumns(rows: readonly ParseRow[]): readonly TextColumn[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row)))]
    .filter((key) => !NOT_COLUMNS.has(key))
    .map((key) => ({ header: key, path: key }));
}

export function valueAt(row: Readonly<ParseRow>, path: string): unknown {
  if (Object.hasOwn(row, path)) return row[path];
  let value: unknown = row;
  for (const segment of path.split('.')) {
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
    value = Object.hasOwn(value, segment) ? (value as ParseRow)[segment] : null;
  }
  return value;
}

export function cellText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value;
  if (value instanceof Date) return value.toJSON() ?? '';
  if (typeof value !== 'object') return String(value as number | boolean | bigint);
  const { __type: type, iso } = value as ParseRow;
  return type === 'Date' && typeof iso === 'string' ? iso : JSON.stringify(value);
}

type Cells = readonly (readonly string[])[];

/** @param value a number is never a formula, also a negative one: as text no spreadsheet would add it up */
export function csvCell(value: unknown, { neutralizeFormulas }: TextFormatOptions): string {
  const text = cellText(value);
  const safe = neutralizeFormulas && typeof value !== 'number' ? withoutFormulas(text) : text;
  return safe === '' || /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csv(lines: readonly (readonly unknown[])[], options: TextFormatOptions): string {
  return lines.map((line) => `${line.map((value) => csvCell(value, options)).join(',')}\n`).join('');
}

export function markdownLine(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

export function markdownCell(text: string): string {
  return text.replace(/[\\|]/g, '\\$&').replace(/\r\n|\r|\n/g, ' ');
}

function markdown([headers = [], ...rows]: Cells): string {
  return [headers.map(markdownCell), headers.map(() => '---'), ...rows.map((row) => row.map(markdownCell))]
    .map(markdownLine)
    .join('\n');
}

const BLANK = /\r\n|[\t\n]/g;

const measureWidth = (text: string) => Array.from(text).length;

function table(lines: Cells): string {
  const cells = lines.map((line) => line.map((text) => withoutHidden(text.replace(BLANK, ' '), ' ')));
  const widths = (cells[0] ?? []).map((_, column) =>
    cells.reduce((widest, line) => Math.max(widest, measureWidth(line[column] ?? '')), 0),
  );
  const rule = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+`;
  const row = (line: readonly string[]) =>
    `| ${line.map((text, column) => text + ' '.repeat((widths[column] ?? 0) - measureWidth(text))).join(' | ')} |`;
  const [header = '', ...body] = cells.map(row);
  return [rule, header, rule, ...body, rule].join('\n');
}

/** Formats rows as one text. Without columns the text is empty. */
export function formatRows(
  format: TextFormat,
  rows: readonly ParseRow[],
  columns: readonly TextColumn[],
  options: TextFormatOptions = {},
): string {
  const headers = columns.map((column) => column.header);
  if (headers.length === 0) return '';
  const values = rows.map((row) => columns.map(({ path }) => valueAt(row, path)));
  const lines = [headers, ...values.map((line) => line.map(cellText))];
  switch (format) {
    case 'csv':
      return csv([headers, ...values], options);
    case 'markdown':
      return markdown(lines);
    case 'table':
      return table(lines);
  }
}
