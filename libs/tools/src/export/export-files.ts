import type { McpRequest } from '#core';
import type { ParseRow } from '#data';
import {
  cellText,
  type TextColumn,
  csvCell,
  markdownCell,
  markdownLine,
  type TextFormatOptions,
  valueAt,
} from '../shaping/text-formats.js';

/** Formats with one independent line per row. */
export const LINE_FORMATS = ['csv', 'ndjson', 'markdown'] as const;
export type LineFormat = (typeof LINE_FORMATS)[number];

export const MEDIA_TYPES: Readonly<Record<LineFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  ndjson: 'application/x-ndjson',
  markdown: 'text/markdown; charset=utf-8',
};

export const FILE_ENDINGS: Readonly<Record<LineFormat, string>> = {
  csv: 'csv',
  ndjson: 'ndjson',
  markdown: 'md',
};

/** Writes a file row by row. Every text ends with a line break. */
export interface ExportLineWriter {
  /** The text before the rows; may be empty. */
  readonly head: string;
  line(row: ParseRow): string;
}

export interface LineOptions extends TextFormatOptions {
  /** NDJSON only: whole rows instead of the columns. Default false. */
  readonly wholeRows?: boolean;
}

/** @param columns select the cells, and the members of NDJSON objects */
export function lineWriter(
  format: LineFormat,
  columns: readonly TextColumn[],
  options: LineOptions = {},
): ExportLineWriter {
  const headers = columns.map(({ header }) => header);
  const values = (row: ParseRow) => columns.map(({ path }) => valueAt(row, path));
  switch (format) {
    case 'csv': {
      // RFC 4180 ends records with CRLF.
      const line = (cells: readonly unknown[]) =>
        `${cells.map((value) => csvCell(value, options)).join(',')}\r\n`;
      return { head: line(headers), line: (row) => line(values(row)) };
    }
    case 'markdown': {
      const line = (texts: readonly string[]) => `${markdownLine(texts.map(markdownCell))}\n`;
      return {
        head: line(headers) + line(headers.map(() => '---')),
        line: (row) => line(values(row).map(cellText)),
      };
    }
    case 'ndjson':
      return {
        head: '',
        line: (row) => `${JSON.stringify(options.wholeRows ? row : pickColumns(row, columns))}\n`,
      };
  }
}

function pickColumns(row: ParseRow, columns: readonly TextColumn[]): ParseRow {
  return Object.fromEntries(columns.map(({ header, path }) => [header, valueAt(row, path) ?? null]));
}

/** The definition of an export that is read later. Its permissions are checked again at every read. */
export interface ExportOrder {
  readonly className: string;
  readonly format: LineFormat;
  readonly where?: unknown;
  readonly keys?: unknown;
  readonly include?: unknown;
  /** The requested columns; empty: the readable fields of the class at the time of reading. */
  readonly columns: readonly TextColumn[];
  /** Maximum rows; null: all. */
  readonly limit: number | null;
}

/** An export that can be fetched. */
export interface OfferedExport {
  /** `export://` and an id that cannot be guessed. */
  readonly uri: string;
  /** The path at the HTTP service; null: not served over HTTP. */
  readonly path: string | null;
  readonly fileName: string;
  readonly mimeType: string;
  /** ISO 8601. */
  readonly expiresAt: string;
  readonly maxRows: number;
}

/** Accepts orders for exports that are read later, only by the caller that ordered them. */
export abstract class ExportStore {
  abstract readonly maxRows: number;
  /** @throws Refused for a caller that could not fetch it later */
  abstract promise(order: ExportOrder, call: Pick<McpRequest, 'agent'>): Promise<OfferedExport>;
}
