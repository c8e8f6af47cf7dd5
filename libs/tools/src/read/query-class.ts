import { Injectable } from '@nestjs/common';
import type { RowPage } from '#data';
import {
  CheckedByData,
  Choice,
  ClassName,
  DefaultFilterChoice,
  WholeNumber,
} from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { BOOLEAN, describeSchema, INTEGER, listOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { presentRows, toSourced } from '../shaping/presented-rows.js';
import {
  formatRows,
  inferColumns,
  TEXT_FORMATS,
  type TextFormat,
  withTextOfRows,
} from '../shaping/text-formats.js';
import { READ_ONLY, RESULTS_VIEW, type ToolCall } from '../tool.js';

/** Maximum rows of one answer, however many were requested: the amount that a model can use at once. */
const ROWS_SHOWN = 50;
const FORMATS = ['json', ...TEXT_FORMATS] as const;

class QueryClassArguments {
  @ClassName() class_name!: string;
  @CheckedByData(
    describeSchema(
      OBJECT,
      'Parse constraint: {"status":"live","author":"<objectId>","createdAt":{"$gte":"2024-01-31"}}',
    ),
  )
  where?: unknown;
  @WholeNumber({ min: 1, max: 1000 }, 'Default 100, max 1000.') limit = 100;
  @WholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER }) skip = 0;
  @CheckedByData(describeSchema(STRING, '-createdAt,title')) order?: unknown;
  @CheckedByData(describeSchema(listOf(STRING), 'At most 64 fields.')) keys?: unknown;
  @CheckedByData(describeSchema(listOf(STRING), 'At most 20 pointers to resolve.')) include?: unknown;
  @DefaultFilterChoice() apply_canonical_filter?: boolean;
  @Choice(FORMATS) format: (typeof FORMATS)[number] = 'json';
}

@Injectable()
export class QueryClass {
  @Tool({
    name: 'query_class',
    title: 'Query a class',
    description:
      'Objects of a class by constraint. Shows at most 50; next_call is the next page, truncated_call the rows not shown. For numbers use count_objects or aggregate, for ids get_object. Name what you need in keys, without large_field ones. No $where, $expr, $function, $accumulator.',
    view: RESULTS_VIEW,
    category: 'query',
    use: 'find',
    timeout: 30,
    clientSafe: true,
    annotations: READ_ONLY,
    input: QueryClassArguments,
    output: objectOf(
      {
        class_name: STRING,
        result_count: INTEGER,
        pagination: OBJECT,
        truncated: BOOLEAN,
        next_call: OBJECT,
        truncated_call: OBJECT,
        results: listOf(OBJECT),
        _truncated: OBJECT,
        headers: listOf(STRING),
        output: STRING,
      },
      ['class_name'],
    ),
  })
  async query(args: QueryClassArguments, call: ToolCall) {
    const { class_name: className, where, order, keys, include, limit, skip, format } = args;
    const applyCanonicalFilter = args.apply_canonical_filter;
    const options = { where, order, keys, include, applyCanonicalFilter, limit, skip, tellsMore: true };
    if (format === 'json') {
      return this.answer(args, await call.records.page(className, { ...options, atMost: ROWS_SHOWN }), call);
    }
    return this.text(args, await call.records.page(className, options), format, call);
  }

  private answer(args: QueryClassArguments, page: RowPage, call: ToolCall) {
    const { class_name: className, limit, skip } = args;
    const { rows, count = rows.length, passed = count, more: hasMore = false } = page;
    const { truncatedIncludeFields } = page;
    const truncated = count > ROWS_SHOWN;
    return {
      class_name: className,
      result_count: count,
      pagination: { limit, skip, has_more: hasMore },
      truncated,
      ...(truncated && { truncated_note: `Showing first ${ROWS_SHOWN} of ${count} results` }),
      ...(truncatedIncludeFields && { truncated_include_fields: truncatedIncludeFields }),
      ...(hasMore && { next_call: describeFollowingCall(args, limit, skip + limit) }),
      ...(truncated && {
        truncated_call: describeFollowingCall(args, passed - ROWS_SHOWN, skip + ROWS_SHOWN),
      }),
      results: presentRows(rows, className, call),
    };
  }

  /** Every fetched row as one text, values in Parse's own form. */
  private text(
    args: QueryClassArguments,
    { rows, passed = rows.length, more = false }: RowPage,
    format: TextFormat,
    call: ToolCall,
  ) {
    const { class_name: className, limit, skip } = args;
    const written = toSourced(rows, className, call);
    const columns = inferColumns(written);
    const build = (kept: number, hasMore = true) => ({
      class_name: className,
      format,
      headers: columns.map(({ header }) => header),
      row_count: kept,
      output: formatRows(format, written.slice(0, kept), columns, call.switches),
      ...(hasMore && {
        truncated: true,
        truncated_note: `More rows match than these ${kept}`,
        pagination: { limit, skip, has_more: true },
        next_call: describeFollowingCall(args, limit, skip + (kept < rows.length ? kept : passed), format),
      }),
    });
    return withTextOfRows(build(rows.length, more), { rows: written, columns, build });
  }
}

/** Repeats the caller's arguments, never added constraints. */
function describeFollowingCall(args: QueryClassArguments, limit: number, skip: number, format?: TextFormat) {
  const { class_name, where, keys, order, include, apply_canonical_filter: choice } = args;
  const written = {
    where,
    keys,
    order,
    include,
    apply_canonical_filter: choice === false ? false : undefined,
  };
  const repeated = Object.entries(written).filter(([, value]) => value !== undefined);
  return {
    tool: 'query_class',
    arguments: { class_name, limit, skip, ...Object.fromEntries(repeated), ...(format && { format }) },
  };
}
