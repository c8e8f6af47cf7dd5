import { Injectable } from '@nestjs/common';
import { type Arguments, optionalString, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, INTEGER, listOf, mapOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';
import { foundRows } from './found-rows.js';
import { resultCount } from './search-arguments.js';

const LIMIT = { fallback: 10, most: 20 };

@Injectable()
export class AtlasFacetedSearch {
  @Tool({
    name: 'atlas_faceted_search',
    title: 'Count by facets',
    description:
      'Counts the rows of a full-text search (Atlas Search) by the values of fields, and shows the best rows. Only for ' +
      'agents built with master_atlas: true, on classes without a default filter, an agent filter or a tenant scope; ' +
      'otherwise use group_by.',
    category: 'query',
    timeout: 45,
    annotations: READ_ONLY,
    input: argumentsOf(
      {
        class_name: STRING,
        facets: {
          ...OBJECT,
          description:
            'Name to { path, type, boundaries, num_buckets }; type string (default), number or date.',
          examples: [{ made: { path: 'createdAt', type: 'date', boundaries: ['2024-01-01', '2025-01-01'] } }],
        },
        query: described(STRING, 'Words to look for. Default: every row.'),
        limit: described(INTEGER, 'Rows shown, not buckets: default 10, max 20.'),
      },
      ['class_name', 'facets'],
    ),
    output: objectOf(
      {
        class_name: STRING,
        total_count: INTEGER,
        facets: mapOf(objectOf({ buckets: listOf(OBJECT) }, ['buckets'])),
        count: INTEGER,
        results: listOf(OBJECT),
      },
      ['class_name', 'total_count', 'facets', 'count', 'results'],
    ),
  })
  async count(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const { total, facets, hits } = await call.search.facets(className, {
      query: optionalString(args, 'query') ?? '',
      facets: args['facets'],
      limit: resultCount(args, 'limit', LIMIT),
    });
    const results = foundRows(hits, ({ score }) => score);
    return {
      class_name: className,
      total_count: total,
      facets: Object.fromEntries([...facets].map(([name, buckets]) => [name, { buckets }])),
      count: results.length,
      results,
    };
  }
}
