import { Injectable } from '@nestjs/common';
import type { ParseRow } from '#data';
import {
  type Arguments,
  boolean,
  canonicalFilterChoice,
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
import { compactPointers } from '../shaping/compact-pointers.js';
import { keepsRowIdentity, rowId, stampSource } from '../shaping/provenance.js';
import type { ToolCall } from '../tool.js';
import { RESULTS_VIEW } from '../views.js';

/** Rows of a pipeline that sets no bound of its own. */
const AUTO_LIMIT = 200;

const AUTO_LIMIT_HINT =
  `Only the first ${AUTO_LIMIT} rows: the pipeline ended in neither $limit nor $count. ` +
  'End it with your own {"$limit": n}, or size the class with count_objects first.';

@Injectable()
export class Aggregate {
  @Tool({
    name: 'aggregate',
    title: 'Aggregate',
    description:
      'Runs a MongoDB pipeline over a class: groups, sums, joins. Logical field names (author, not _p_author). Cut to 200 ' +
      'rows unless it ends in $limit or $count. At most 20 stages; no $out, $merge, $where, $function, ' +
      '$accumulator. For plain rows use query_class, for one number count_objects.',
    view: RESULTS_VIEW,
    category: 'aggregate',
    timeout: 60,
    task: 'optional',
    annotations: READ_ONLY,
    input: argumentsOf(
      {
        class_name: STRING,
        pipeline: described(listOf(OBJECT), 'e.g. [{"$group":{"_id":"$status","n":{"$sum":1}}}]'),
        compact_pointers: described(BOOLEAN, 'Default true: bare ids, classes in pointer_classes.'),
        apply_canonical_filter: described(BOOLEAN, 'false: no default filter.'),
      },
      ['class_name', 'pipeline'],
    ),
    output: objectOf(
      {
        class_name: STRING,
        pipeline_stages: INTEGER,
        result_count: INTEGER,
        route: STRING,
        results: listOf(OBJECT),
        pointer_classes: mapOf(STRING),
        auto_limited: BOOLEAN,
        auto_limit: INTEGER,
        hint: STRING,
        _truncated: OBJECT,
      },
      ['class_name', 'results'],
    ),
  })
  async aggregate(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const { pipeline } = args;
    if (pipeline === undefined || pipeline === null) refuseArgument('pipeline is required');
    const compact = boolean(args, 'compact_pointers', true);
    const { rows, route, autoLimited } = await call.records.aggregate(className, pipeline, {
      applyCanonicalFilter: canonicalFilterChoice(args),
      rewriteLookups: boolean(args, 'rewrite_lookups', true),
      autoLimit: AUTO_LIMIT,
    });
    const { rows: shaped, pointerClasses } = compact ? compactPointers(rows) : { rows, pointerClasses: null };
    return {
      class_name: className,
      pipeline_stages: Array.isArray(pipeline) ? pipeline.length : 0,
      result_count: rows.length,
      route,
      results: this.sourced(shaped, className, pipeline, call),
      ...(pointerClasses && { pointer_classes: pointerClasses }),
      ...(autoLimited &&
        rows.length >= AUTO_LIMIT && {
          auto_limited: true,
          auto_limit: AUTO_LIMIT,
          hint: AUTO_LIMIT_HINT,
        }),
    };
  }

  private sourced(
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
