import { Injectable } from '@nestjs/common';
import type { ParseRow } from '#data';
import { Allow, IsOptional } from 'class-validator';
import { Undeclared } from '#schema';
import { ClassName, DefaultFilterChoice, Flag, Present } from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { BOOLEAN, describeSchema, INTEGER, listOf, mapOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { compactPointers, keepsRowIdentity, rowId, stampSource } from '../shaping/presented-rows.js';
import { READ_ONLY, RESULTS_VIEW, type ToolCall } from '../tool.js';

/** Row limit of a pipeline without its own limit. */
const AUTO_LIMIT = 200;

const AUTO_LIMIT_HINT =
  `Only the first ${AUTO_LIMIT} rows: the pipeline ended in neither $limit nor $count. ` +
  'End it with your own {"$limit": n}, or size the class with count_objects first.';

class AggregateArguments {
  @ClassName() class_name!: string;
  @Present(describeSchema(listOf(OBJECT), '[{"$group":{"_id":"$status","n":{"$sum":1}}}]'))
  pipeline!: unknown;
  @Flag('Default true: bare ids.') compact_pointers = true;
  @DefaultFilterChoice() apply_canonical_filter?: boolean;
  @Flag() @Undeclared() rewrite_lookups = true;
  /** Has no effect: Parley chooses the route. */
  @IsOptional() @Allow() @Undeclared() mongo_direct?: unknown;
}

@Injectable()
export class Aggregate {
  @Tool({
    name: 'aggregate',
    title: 'Aggregate',
    description:
      'A MongoDB pipeline over a class: groups, sums, joins. Logical field names (author, not _p_author). Cut to 200 rows unless it ends in $limit or $count. At most 20 stages; no $out, $merge, $where, $function, $accumulator. For rows use query_class, for one number count_objects.',
    view: RESULTS_VIEW,
    category: 'aggregate',
    use: 'find',
    timeout: 60,
    task: 'optional',
    annotations: READ_ONLY,
    input: AggregateArguments,
    output: objectOf(
      {
        class_name: STRING,
        result_count: INTEGER,
        results: listOf(OBJECT),
        pointer_classes: mapOf(STRING),
        auto_limited: BOOLEAN,
        hint: STRING,
        _truncated: OBJECT,
      },
      ['class_name', 'results'],
    ),
  })
  async aggregate(args: AggregateArguments, call: ToolCall) {
    const { class_name: className, pipeline, compact_pointers: compact } = args;
    const { rows, route, autoLimited } = await call.records.aggregate(className, pipeline, {
      applyCanonicalFilter: args.apply_canonical_filter,
      rewriteLookups: args.rewrite_lookups,
      autoLimit: AUTO_LIMIT,
    });
    const { rows: shaped, pointerClasses } = compact ? compactPointers(rows) : { rows, pointerClasses: null };
    return {
      class_name: className,
      pipeline_stages: Array.isArray(pipeline) ? pipeline.length : 0,
      result_count: rows.length,
      route,
      results: this.toSourced(shaped, className, pipeline, call),
      ...(pointerClasses && { pointer_classes: pointerClasses }),
      ...(autoLimited &&
        rows.length >= AUTO_LIMIT && {
          auto_limited: true,
          auto_limit: AUTO_LIMIT,
          hint: AUTO_LIMIT_HINT,
        }),
    };
  }

  private toSourced(
    rows: readonly ParseRow[],
    className: string,
    pipeline: unknown,
    call: ToolCall,
  ): readonly ParseRow[] {
    if (!call.switches.includeSourceProvenance) return rows;
    const ownRows = keepsRowIdentity(pipeline);
    return rows.map((row) => stampSource(row, className, call.tool.name, ownRows ? rowId(row) : null));
  }
}
