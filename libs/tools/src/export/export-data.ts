import { Injectable } from '@nestjs/common';
import type { GovernedClass, ParseRow } from '#data';
import {
  type Arguments,
  integer,
  oneOf,
  refuseArgument,
  requiredString,
} from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import {
  argumentsOf,
  BOOLEAN,
  described,
  INTEGER,
  listOf,
  mapOf,
  OBJECT,
  objectOf,
  STRING,
} from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import { fittingText } from '../shaping/oversize-text.js';
import { type Column, formatRows, inferColumns, TEXT_FORMATS } from '../shaping/text-formats.js';
import type { ToolCall } from '../tool.js';
import { exportColumns } from './export-columns.js';
import { ExportDesk } from './export-desk.js';
import { promisedExport } from './export-promise.js';
import { logicalRows } from './logical-rows.js';
import { LINE_FORMATS } from './line-formats.js';

const DELIVERIES = ['inline', 'resource'] as const;
const FORMATS = [...new Set([...TEXT_FORMATS, ...LINE_FORMATS])];
const DEFAULT_LIMIT = 100;
const SKIP = { default: 0, min: 0, max: Number.MAX_SAFE_INTEGER };
const ROW_CAP = { default: 1000, max: 10_000 };
/** A file has a header even when nothing was found. */
const NO_ROWS: readonly Column[] = [{ header: 'objectId', path: 'objectId' }];

@Injectable()
export class ExportData {
  constructor(private readonly desk: ExportDesk) {}

  @Tool({
    name: 'export_data',
    title: 'Export data',
    description:
      'Objects of a class, or the rows of an aggregation pipeline, as one CSV, Markdown or text-table. With a pipeline ' +
      'the query arguments are ignored. truncated: true tells that more rows match: follow next_call, raise row_cap, or ask ' +
      'for delivery resource, which answers with a link to a file of all rows, in the order of their ids. To read ' +
      "rows yourself use query_class. The class's default filter always applies.",
    category: 'export',
    timeout: 60,
    task: 'optional',
    annotations: READ_ONLY,
    input: argumentsOf(
      {
        class_name: STRING,
        where: described(OBJECT, 'As in query_class.'),
        keys: described(listOf(STRING), 'Fields to return, at most 64.'),
        include: described(listOf(STRING), 'Pointer fields to resolve, at most 20.'),
        order: described(STRING, 'e.g. -createdAt,title'),
        limit: described(
          INTEGER,
          'Default: row_cap, or 100 without one; max 10000. As a resource: all rows.',
        ),
        skip: INTEGER,
        pipeline: described(listOf(OBJECT), 'As in aggregate, instead of a query.'),
        columns: described(
          listOf({ anyOf: [STRING, mapOf(STRING)] }),
          'e.g. ["title", {"author.name": "Author"}]; at most 200. Default: the fields of the first row.',
        ),
        format: { type: 'string', enum: FORMATS, description: 'ndjson only as a resource, table never.' },
        delivery: {
          type: 'string',
          enum: DELIVERIES,
          description:
            'resource: a link to rows of any number, without order, skip, pipeline and row_cap. Default inline.',
        },
        row_cap: described(INTEGER, 'Rows written at most: default 1000, max 10000.'),
      },
      ['class_name'],
    ),
    output: objectOf(
      {
        class_name: STRING,
        format: STRING,
        headers: listOf(STRING),
        row_count: INTEGER,
        output: STRING,
        truncated: BOOLEAN,
        available_rows: INTEGER,
        row_cap: INTEGER,
        hint: STRING,
        next_call: OBJECT,
        uri: STRING,
        path: STRING,
        expires_at: STRING,
        max_rows: INTEGER,
      },
      ['class_name', 'format'],
    ),
  })
  async export(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const known = await call.records.admit(className);
    if (oneOf(args, 'delivery', DELIVERIES, 'inline') === 'resource')
      return promisedExport(args, known, call, this.desk);
    const format = oneOf(args, 'format', TEXT_FORMATS, 'csv');
    const cap = rowCap(args);
    const chosen = exportColumns(args);
    const { rows, more } = await fetchRows(args, className, call, cap);
    const written = rows.slice(0, cap);
    const columns = chosen.length > 0 ? this.resolved(chosen, args, known) : shownColumns(written);
    const { headers, output } = formatRows(format, written, columns, call.switches);
    const text = {
      class_name: className,
      format,
      headers,
      row_count: written.length,
      output,
      ...((more || rows.length > cap) && cutNote({ args, cap, available: rows.length, more })),
    };
    return fittingText(text, written, columns, call);
  }

  /** Queried rows carry wire names, whatever spelling a column was asked for in; a pipeline names its own. */
  private resolved(columns: readonly Column[], args: Arguments, known: GovernedClass): readonly Column[] {
    if (pipelineOf(args) !== undefined) return columns;
    const { names } = known.policy;
    return columns.map(({ header, path }) => ({ header, path: names.wirePath(path) }));
  }
}

function pipelineOf(args: Arguments): unknown {
  return args['pipeline'] ?? undefined;
}

function rowCap(args: Arguments): number {
  const cap = integer(args, 'row_cap', { ...ROW_CAP, min: Number.MIN_SAFE_INTEGER });
  return cap >= 1 ? cap : refuseArgument('row_cap must be positive');
}

interface Fetched {
  readonly rows: readonly ParseRow[];
  /** Rows that were not fetched match as well. */
  readonly more: boolean;
}

async function fetchRows(args: Arguments, className: string, call: ToolCall, cap: number): Promise<Fetched> {
  const pipeline = pipelineOf(args);
  if (pipeline !== undefined) {
    // One more than could be written: that there is more must be told.
    const options = { atMost: ROW_CAP.max + 1, expectsScan: true };
    const { rows } = await call.records.aggregate(className, pipeline, options);
    return { rows: logicalRows(rows), more: rows.length > ROW_CAP.max };
  }
  const { where, keys, include, order } = args;
  const asked = (args['row_cap'] ?? undefined) === undefined ? DEFAULT_LIMIT : Math.max(cap, DEFAULT_LIMIT);
  const limit = integer(args, 'limit', { default: asked, min: 1, max: Math.max(cap, ROW_CAP.default) });
  const skip = integer(args, 'skip', SKIP);
  const query = { where, keys, include, order, limit, skip };
  const { rows, more = false } = await call.records.page(className, {
    ...query,
    ceiling: ROW_CAP.max,
    tellsMore: true,
    expectsScan: true,
  });
  return { rows, more };
}

interface Cut {
  readonly args: Arguments;
  readonly cap: number;
  /** Rows that were fetched. */
  readonly available: number;
  readonly more: boolean;
}

/** That there is more than was written, and how to get it. */
function cutNote({ args, cap, available, more }: Cut) {
  const written = Math.min(cap, available);
  const wrote =
    available > cap
      ? `Wrote row_cap=${cap} of ${available} rows${more ? ', and more match' : ''}.`
      : `Wrote the first ${written} rows; more match.`;
  const queried = pipelineOf(args) === undefined;
  const onwards = queried
    ? `Follow next_call, raise row_cap and limit (max ${ROW_CAP.max}), narrow where, or ask for {"delivery":"resource"}.`
    : `Raise row_cap (max ${ROW_CAP.max}), or narrow the pipeline.`;
  const { delivery: _inline, ...repeated } = args;
  const skip = integer(args, 'skip', SKIP) + written;
  return {
    truncated: true,
    available_rows: available,
    row_cap: cap,
    hint: `${wrote} ${onwards}`,
    ...(queried && more && { next_call: { tool: 'export_data', arguments: { ...repeated, skip } } }),
  };
}

function shownColumns(rows: readonly ParseRow[]): readonly Column[] {
  const inferred = inferColumns(rows);
  return inferred.length > 0 ? inferred : NO_ROWS;
}
