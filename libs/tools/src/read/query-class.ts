import { Injectable } from '@nestjs/common';
import type { RowPage } from '#data';
import {
  type Arguments,
  canonicalFilterChoice,
  integer,
  oneOf,
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
import { formatRows, inferColumns, TEXT_FORMATS, type TextFormat } from '../shaping/text-formats.js';
import type { ToolCall } from '../tool.js';
import { presentRows, sourced } from './row-source.js';
import { RESULTS_VIEW } from '../views.js';

const LIMIT = { default: 100, min: 1, max: 1000 };
const SKIP = { default: 0, min: 0, max: Number.MAX_SAFE_INTEGER };
/** Rows one answer shows, however many were asked for: what a model can usefully read at once. */
const ROWS_SHOWN = 50;
const FORMATS = ['json', ...TEXT_FORMATS] as const;

interface Query {
  readonly className: string;
  readonly limit: number;
  readonly skip: number;
  /** What the caller wrote and a following call repeats; never anything that was added to it. */
  readonly repeated: Arguments;
}

@Injectable()
export class QueryClass {
  @Tool({
    name: 'query_class',
    title: 'Query a class',
    description:
      'Fetches objects of a class by constraint. Shows at most 50; next_call is the next page, truncated_call the rows not ' +
      'shown. For numbers use count_objects or aggregate, for known ids get_object. Name what you need in keys, without ' +
      'fields that get_schema marks large_field. No $where, $expr, $function, $accumulator.',
    view: RESULTS_VIEW,
    category: 'query',
    timeout: 30,
    clientSafe: true,
    annotations: READ_ONLY,
    input: argumentsOf(
      {
        class_name: STRING,
        where: described(
          OBJECT,
          'Parse constraint, e.g. {"status":"live","createdAt":{"$gte":{"__type":"Date","iso":"…"}}}',
        ),
        limit: described(INTEGER, 'Default 100, max 1000.'),
        skip: INTEGER,
        order: described(STRING, 'e.g. -createdAt,title'),
        keys: described(listOf(STRING), 'Fields to return, at most 64.'),
        include: described(listOf(STRING), 'Pointer fields to resolve, at most 20.'),
        apply_canonical_filter: described(BOOLEAN, 'false: no default filter.'),
        format: { type: 'string', enum: FORMATS },
      },
      ['class_name'],
    ),
    output: objectOf(
      {
        class_name: STRING,
        result_count: INTEGER,
        pagination: OBJECT,
        truncated: BOOLEAN,
        truncated_note: STRING,
        truncated_include_fields: mapOf(listOf(STRING)),
        next_call: OBJECT,
        truncated_call: OBJECT,
        results: listOf(OBJECT),
        _truncated: OBJECT,
        format: STRING,
        headers: listOf(STRING),
        row_count: INTEGER,
        output: STRING,
      },
      ['class_name'],
    ),
  })
  async query(args: Arguments, call: ToolCall) {
    const format = oneOf(args, 'format', FORMATS, 'json');
    const { where, order, keys, include } = args;
    const applyCanonicalFilter = canonicalFilterChoice(args);
    const query: Query = {
      className: requiredString(args, 'class_name'),
      limit: integer(args, 'limit', LIMIT),
      skip: integer(args, 'skip', SKIP),
      repeated: present({
        where,
        keys,
        order,
        include,
        apply_canonical_filter: applyCanonicalFilter === false ? false : undefined,
      }),
    };
    const { className, limit, skip } = query;
    const options = { where, order, keys, include, applyCanonicalFilter, limit, skip };
    if (format === 'json') return this.answer(query, await call.records.page(className, options), call);
    return this.text(
      query,
      await call.records.page(className, { ...options, tellsMore: true }),
      format,
      call,
    );
  }

  private answer(query: Query, { rows, truncatedIncludeFields }: RowPage, call: ToolCall) {
    const { className, limit, skip } = query;
    const hasMore = rows.length >= limit;
    const truncated = rows.length > ROWS_SHOWN;
    return {
      class_name: className,
      result_count: rows.length,
      pagination: { limit, skip, has_more: hasMore },
      truncated,
      ...(truncated && { truncated_note: `Showing first ${ROWS_SHOWN} of ${rows.length} results` }),
      ...(truncatedIncludeFields && { truncated_include_fields: truncatedIncludeFields }),
      ...(hasMore && { next_call: followingCall(query, limit, skip + limit) }),
      ...(truncated && {
        truncated_call: followingCall(query, rows.length - ROWS_SHOWN, skip + ROWS_SHOWN),
      }),
      results: presentRows(rows.slice(0, ROWS_SHOWN), className, call),
    };
  }

  /** Every fetched row in one piece of text, values in Parse's own form. */
  private text(query: Query, { rows, more = false }: RowPage, format: TextFormat, call: ToolCall) {
    const { className, limit, skip } = query;
    const written = sourced(rows, className, call);
    const columns = inferColumns(written);
    const { headers, output } = formatRows(format, written, columns, call.switches);
    const text = {
      class_name: className,
      format,
      headers,
      row_count: rows.length,
      output,
      ...(more && {
        truncated: true,
        truncated_note: `More rows match than these ${rows.length}`,
        pagination: { limit, skip, has_more: true },
        next_call: followingCall(query, limit, skip + limit, format),
      }),
    };
    return fittingText(text, written, columns, call);
  }
}

const present = (args: Arguments): Arguments =>
  Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined && value !== null));

function followingCall({ className, repeated }: Query, limit: number, skip: number, format?: TextFormat) {
  return {
    tool: 'query_class',
    arguments: { class_name: className, limit, skip, ...repeated, ...(format && { format }) },
  };
}
