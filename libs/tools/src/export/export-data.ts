import { cutText } from '#core';
import { Injectable } from '@nestjs/common';
import { IsOptional, ValidateIf } from 'class-validator';
import type { GovernedClass, ParseRow } from '#data';
import { hasInternalSegment, isFieldPath, MAX_KEYS } from '#policy';
import { AsGiven } from '#schema';
import { admitsClass, refuseArgument, type Arguments } from '../arguments/argument-class.js';
import {
  CheckedBy,
  CheckedByData,
  Choice,
  ClassName,
  WholeNumber,
} from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { BOOLEAN, describeSchema, INTEGER, listOf, mapOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { compactPointers } from '../shaping/presented-rows.js';
import { resultText } from '../shaping/presented-rows.js';
import { withTextOfRows } from '../shaping/text-formats.js';
import {
  type TextColumn,
  formatRows,
  inferColumns,
  TEXT_FORMATS,
  type TextFormat,
  valueAt,
} from '../shaping/text-formats.js';
import { READ_ONLY, type ToolCall, ToolContent } from '../tool.js';
import { ExportStore, type ExportOrder, LINE_FORMATS, type LineFormat } from './export-files.js';

const DELIVERIES = ['inline', 'resource'] as const;
const FORMATS = [...new Set([...TEXT_FORMATS, ...LINE_FORMATS])];
const DEFAULT_LIMIT = 100;
const DEFAULT_ROW_CAP = 1000;
const MAX_ROWS = 10_000;
/** A file has a header even without rows. */
const NO_ROWS: readonly TextColumn[] = [{ header: 'objectId', path: 'objectId' }];
/** Arguments that a file of any number of rows cannot support: rows are read in pages by id. */
const INLINE_ONLY = ['order', 'skip', 'pipeline', 'row_cap'] as const;

/** Cells are rows times columns, and a request could name thousands of columns. */
const MAX_COLUMNS = 200;

function pathError(path: string): string | null {
  if (!isFieldPath(path))
    return 'columns: field names, with dots between the names of a path; underscore-prefixed names are not permitted';
  return hasInternalSegment(path) ? `columns: '${path}' cannot be exported` : null;
}

function columnError(entry: unknown): string | null {
  if (typeof entry === 'string') return pathError(entry);
  if (entry === null || typeof entry !== 'object' || Array.isArray(entry))
    return 'columns: every entry is a field name or one {"field": "header"}';
  const [pair, ...others] = Object.entries(entry);
  if (!pair || others.length > 0 || typeof pair[1] !== 'string')
    return 'columns: an object entry is exactly one {"field": "header"}';
  return pathError(pair[0]);
}

/** A path, or `{ path: header }`. Internal columns are refused. */
function columnsError(columns: unknown): string | null {
  if (!Array.isArray(columns)) return 'columns must be a list';
  if (columns.length > MAX_COLUMNS) return `columns: at most ${MAX_COLUMNS}`;
  for (const entry of columns) {
    const error = columnError(entry);
    if (error !== null) return error;
  }
  return null;
}

const rowCapError = (cap: unknown) => (Number(cap) >= 1 ? null : 'row_cap must be positive');

type Conditions = Pick<ExportDataArguments, 'delivery' | 'pipeline'>;
/** A resource supports only the class, its filter and its columns. */
const isInline = ({ delivery }: Conditions): boolean => delivery !== 'resource';
const isInlineQuery = (args: Conditions): boolean => isInline(args) && args.pipeline === undefined;
const listFormats = (args: object): readonly string[] =>
  isInline(args as Conditions) ? TEXT_FORMATS : LINE_FORMATS;

class ExportDataArguments {
  static readonly admission = admitsClass;

  @ClassName() class_name!: string;
  @CheckedByData(OBJECT) where?: unknown;
  @CheckedByData(listOf(STRING)) keys?: unknown;
  @CheckedByData(listOf(STRING)) include?: unknown;
  @CheckedByData(STRING) order?: unknown;
  @ValidateIf(isInlineQuery)
  @WholeNumber({ min: 1, max: Number.MAX_SAFE_INTEGER }, 'Default row_cap or 100; resource: all.')
  limit?: number;
  @ValidateIf(isInlineQuery)
  @WholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER })
  skip = 0;
  @CheckedByData(listOf(OBJECT)) pipeline?: unknown;
  @IsOptional()
  @CheckedBy(
    columnsError,
    describeSchema(
      listOf({ anyOf: [STRING, mapOf(STRING)] }),
      '["title",{"author.name":"Author"}], at most 200.',
    ),
  )
  columns: readonly (string | Readonly<Record<string, string>>)[] = [];
  @Choice(FORMATS, { description: 'resource: csv, markdown, ndjson.', among: listFormats })
  format: TextFormat | LineFormat = 'csv';
  @Choice(DELIVERIES, {
    description: 'resource takes no order, skip, pipeline, row_cap.',
  })
  delivery: (typeof DELIVERIES)[number] = 'inline';
  @ValidateIf(isInline)
  @CheckedBy(rowCapError, {})
  @WholeNumber({ min: Number.MIN_SAFE_INTEGER, max: MAX_ROWS }, 'Default 1000, max 10000.')
  row_cap?: number;
  @AsGiven() given!: Arguments;
}

@Injectable()
export class ExportData {
  constructor(private readonly store: ExportStore) {}

  @Tool({
    name: 'export_data',
    title: 'Export data',
    description:
      'Rows of a query or pipeline as one CSV, Markdown or text table. truncated: more match: follow next_call, raise row_cap, or use delivery resource, a link to all rows. To read rows use query_class. Default filter applies.',
    category: 'export',
    use: 'find',
    timeout: 60,
    task: 'optional',
    annotations: READ_ONLY,
    input: ExportDataArguments,
    output: objectOf(
      {
        class_name: STRING,
        format: STRING,
        headers: listOf(STRING),
        row_count: INTEGER,
        output: STRING,
        truncated: BOOLEAN,
        hint: STRING,
        next_call: OBJECT,
        uri: STRING,
        path: STRING,
        expires_at: STRING,
      },
      ['class_name', 'format'],
    ),
  })
  async export(args: ExportDataArguments, call: ToolCall) {
    const { class_name: className, format, row_cap: cap = DEFAULT_ROW_CAP } = args;
    const known = await call.records.admit(className);
    if (args.delivery === 'resource') return this.orderExport(args, known.className, call);
    const { rows, more, passed } = await fetchRows(args, { cap, call });
    const written = rows.slice(0, cap);
    const chosen = args.columns.map(findColumn);
    const columns = chosen.length > 0 ? this.resolveColumns(chosen, args, known) : listShownColumns(written);
    if (chosen.length > 0) noteEmpty(columns, written, call);
    const available = rows.length;
    const build = (kept: number) => ({
      class_name: className,
      format,
      headers: columns.map(({ header }) => header),
      row_count: kept,
      output: formatRows(format as TextFormat, written.slice(0, kept), columns, call.switches),
      ...((more || available > kept) && cutNote({ args, cap, kept, available, more, passed })),
    });
    return withTextOfRows(build(written.length), { rows: written, columns, build });
  }

  /** Queried rows have wire names, whatever the spelling of the requested column; a pipeline names its own. */
  private resolveColumns(
    columns: readonly TextColumn[],
    { pipeline }: ExportDataArguments,
    known: GovernedClass,
  ): readonly TextColumn[] {
    if (pipeline !== undefined) return columns;
    const { names } = known.policy;
    return columns.map(({ header, path }) => ({ header, path: names.wirePath(path) }));
  }

  /** A link instead of rows. One row is read, so that a refusal of the export occurs now. */
  private async orderExport(
    args: ExportDataArguments,
    className: string,
    call: ToolCall,
  ): Promise<ToolContent> {
    const { given } = args;
    const refused = INLINE_ONLY.find((name) => Object.hasOwn(given, name) && given[name] !== null);
    if (refused !== undefined) return refuseArgument(`${refused} cannot be used with delivery resource`);
    const order = createOrder(args, className, this.store.maxRows);
    refuseRepeatedMembers(order);
    const { where, keys, include } = order;
    await call.records.find(className, { where, keys, include, after: '', limit: 1 });
    const { uri, path, fileName, mimeType, expiresAt, maxRows } = await this.store.promise(order, call);
    const data = {
      class_name: className,
      format: order.format,
      uri,
      ...(path !== null && { path }),
      expires_at: expiresAt,
      max_rows: order.limit ?? maxRows,
      hint: `Read ${uri} as a resource, part by part${path === null ? '' : `, or GET ${path} from this server with the same credentials`}.`,
    };
    const description = `Rows of ${className} as ${order.format}, until ${expiresAt}`;
    return new ToolContent(
      [
        { type: 'text', text: resultText(data, call.switches.prettyText) },
        { type: 'resource_link', uri, name: fileName, description, mimeType },
      ],
      data,
    );
  }
}

/** A line of NDJSON is one object: of two members with one name the first would be lost. */
function refuseRepeatedMembers({ format, columns }: ExportOrder): void {
  if (format !== 'ndjson') return;
  const headers = columns.map(({ header }) => header);
  const repeated = headers.find((header, at) => headers.indexOf(header) !== at);
  if (repeated !== undefined)
    refuseArgument(
      `columns: two columns are called '${cutText(repeated, 64)}', and a line of ndjson holds one`,
    );
}

function findColumn(entry: string | Readonly<Record<string, string>>): TextColumn {
  if (typeof entry === 'string') return { path: entry, header: entry };
  const [path = '', header = ''] = Object.entries(entry)[0] ?? [];
  return { path, header };
}

function createOrder(args: ExportDataArguments, className: string, maxRows: number): ExportOrder {
  const { where, include, limit } = args;
  const keys = readKeys(args);
  if (limit !== undefined && !(Number.isInteger(limit) && limit >= 1 && limit <= maxRows))
    refuseArgument(`limit must be between 1 and ${maxRows}`);
  return {
    className,
    format: args.format as LineFormat,
    ...(where !== undefined && { where }),
    ...(keys !== undefined && { keys }),
    ...(include !== undefined && { include }),
    columns: args.columns.map(findColumn),
    limit: limit ?? null,
  };
}

/** What is read of a row: what the chosen columns show, where they are no more than a read takes; without columns the keys. */
function readKeys({ keys, columns }: ExportDataArguments): unknown {
  return columns.length === 0 || columns.length > MAX_KEYS
    ? keys
    : columns.map((entry) => findColumn(entry).path);
}

interface Fetched {
  readonly rows: readonly ParseRow[];
  /** More rows match than were fetched. */
  readonly more: boolean;
  /** Rows behind which the further ones begin: Cloud Code of a Parse Server may have removed some of the fetched. */
  readonly passed: number;
}

async function fetchRows(
  args: ExportDataArguments,
  { cap, call }: { readonly cap: number; readonly call: ToolCall },
): Promise<Fetched> {
  const { class_name: className, where, include, order, pipeline, row_cap: asked, skip } = args;
  if (pipeline !== undefined) {
    // One more than can be written, to detect further rows.
    const { rows } = await call.records.aggregate(className, pipeline, { atMost: MAX_ROWS + 1 });
    return { rows: logicalRows(rows), more: rows.length > MAX_ROWS, passed: rows.length };
  }
  const usual = asked === undefined ? DEFAULT_LIMIT : Math.max(cap, DEFAULT_LIMIT);
  const limit = Math.min(args.limit ?? usual, Math.max(cap, DEFAULT_ROW_CAP));
  const {
    rows,
    passed = rows.length,
    more = false,
  } = await call.records.page(className, {
    where,
    keys: readKeys(args),
    include,
    order,
    limit,
    skip,
    ceiling: MAX_ROWS,
    tellsMore: true,
  });
  return { rows, more, passed };
}

interface Cut {
  readonly args: ExportDataArguments;
  readonly cap: number;
  /** Rows that were written. */
  readonly kept: number;
  /** Rows that were fetched. */
  readonly available: number;
  readonly more: boolean;
  readonly passed: number;
}

/** The note that more rows exist than were written, and how to get them. */
function cutNote({ args, cap, kept, available, more, passed }: Cut) {
  const wrote =
    available > kept
      ? `Wrote ${kept === cap ? `row_cap=${cap}` : kept} of ${available} rows${more ? ', and more match' : ''}.`
      : `Wrote the first ${kept} rows; more match.`;
  const queried = args.pipeline === undefined;
  const isFull = kept < Math.min(cap, available);
  const raise = isFull ? '' : ` raise row_cap${queried ? ' and limit' : ''} (max ${MAX_ROWS}),`;
  const onwards = queried
    ? `Follow next_call,${raise} narrow where, or ask for {"delivery":"resource"}.`
    : `For the others end the pipeline with $sort and {"$skip":${kept}},${raise} or narrow the pipeline.`;
  const { delivery: _inline, ...repeated } = args.given;
  return {
    truncated: true,
    available_rows: available,
    row_cap: cap,
    hint: `${wrote} ${onwards}`,
    ...(queried && {
      next_call: {
        tool: 'export_data',
        arguments: { ...repeated, skip: args.skip + (kept < available ? kept : passed) },
      },
    }),
  };
}

/** Notes the chosen columns without a value: by a slip, or because the rows have none. */
function noteEmpty(columns: readonly TextColumn[], rows: readonly ParseRow[], { note }: ToolCall): void {
  const empty = columns.filter(({ path }) => rows.every((row) => (valueAt(row, path) ?? null) === null));
  if (rows.length > 0 && empty.length > 0)
    note?.(
      cutText(`no row has a value for the columns ${empty.map(({ path }) => `'${path}'`).join(', ')}`, 512),
    );
}

function listShownColumns(rows: readonly ParseRow[]): readonly TextColumn[] {
  const inferred = inferColumns(rows);
  return inferred.length > 0 ? inferred : NO_ROWS;
}

const POINTER = /^_p_([A-Za-z][A-Za-z0-9_]*)$/;

/** Whole documents of a class, with the column names of the database. */
const STORED_COLUMNS = [
  ['_id', 'objectId'],
  ['_created_at', 'createdAt'],
  ['_updated_at', 'updatedAt'],
] as const;

/**
 * Rows of a pipeline under logical names: a pointer is `author` with the id of its object, whatever its column name. A
 * pointer column with several classes keeps them in its values.
 */
function logicalRows(rows: readonly ParseRow[]): readonly ParseRow[] {
  const documents = rows.length > 0 && rows.every((row) => '_created_at' in row && '_updated_at' in row);
  return compactPointers(rows).rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [logicalName(name, row, documents), value]),
    ),
  );
}

function logicalName(name: string, row: ParseRow, documents: boolean): string {
  const [, pointer] = POINTER.exec(name) ?? [];
  const stored = documents ? STORED_COLUMNS.find(([column]) => column === name)?.[1] : undefined;
  const logical = pointer ?? stored ?? name;
  return logical !== name && Object.hasOwn(row, logical) ? name : logical;
}
