import { Injectable } from '@nestjs/common';
import {
  ArgumentSchema,
  Flag,
  GivenText,
  JsonObject,
  RequiredCheckedByData,
  RequiredText,
  ResultCount,
  Text,
  TextList,
} from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { INTEGER, listOf, mapOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { sourced } from '../shaping/presented-rows.js';
import { READ_ONLY, type ToolCall } from '../tool.js';
import { foundRows, searchText } from './found-rows.js';

const MAX_ROWS = 20;

class AtlasTextSearchArguments {
  @RequiredText() class_name!: string;
  @GivenText('Words to look for; any of them.') query!: string;
  @TextList('Fields to search. Default: all that hold text.') fields?: readonly string[];
  @ResultCount(MAX_ROWS, 'Rows at most: default 10, max 20.') limit = 10;
  @Text('Shows the passages of this field that matched.') highlight_field?: string;
  @JsonObject('Constraint on the rows found, as where in query_class.')
  filter?: Readonly<Record<string, unknown>>;
}

@Injectable()
export class AtlasTextSearch {
  @Tool({
    name: 'atlas_text_search',
    title: 'Search by words',
    description:
      'Full-text search (Atlas Search) over the text of a class, best rows first with a score. Searches every readable ' +
      'text unless fields names some. For exact values and ranges use query_class, to complete a word ' +
      "atlas_autocomplete, for meaning semantic_search. The class's default filter always applies.",
    category: 'query',
    timeout: 30,
    annotations: READ_ONLY,
    input: AtlasTextSearchArguments,
    output: objectOf({ class_name: STRING, count: INTEGER, results: listOf(OBJECT) }, [
      'class_name',
      'count',
      'results',
    ]),
  })
  async search(args: AtlasTextSearchArguments, call: ToolCall) {
    const { class_name: className, fields, filter, limit } = args;
    const highlightField = args.highlight_field || undefined;
    const query = searchText('query', args.query);
    const hits = await call.search.text(className, { query, fields, highlightField, filter, limit });
    const rows = foundRows(hits, ({ score }) => score, highlightField !== undefined);
    return {
      class_name: className,
      count: rows.length,
      results: sourced(rows, className, call),
    };
  }
}

class AtlasAutocompleteArguments {
  @RequiredText() class_name!: string;
  @GivenText('What was typed so far.') query!: string;
  @ArgumentSchema({ examples: ['objectId'] })
  @RequiredText('The text field to complete from.')
  field!: string;
  @ResultCount(MAX_ROWS, 'Rows at most: default 10, max 20.') limit = 10;
  @Flag('true: forgives one letter. Default false.') fuzzy = false;
}

@Injectable()
export class AtlasAutocomplete {
  @Tool({
    name: 'atlas_autocomplete',
    title: 'Complete a word',
    description:
      'Values of one text field that begin with what is typed (Atlas Search), best first: for finding the exact ' +
      'spelling of a name before query_class. For whole texts use atlas_text_search.',
    category: 'query',
    timeout: 15,
    annotations: READ_ONLY,
    input: AtlasAutocompleteArguments,
    output: objectOf(
      {
        class_name: STRING,
        field: STRING,
        suggestions: listOf(STRING),
        count: INTEGER,
        results: listOf(OBJECT),
      },
      ['class_name', 'field', 'suggestions', 'count', 'results'],
    ),
  })
  async complete(args: AtlasAutocompleteArguments, call: ToolCall) {
    const { class_name: className, field, fuzzy, limit } = args;
    const query = searchText('query', args.query);
    const { suggestions, hits } = await call.search.autocomplete(className, { query, field, fuzzy, limit });
    const results = foundRows(hits, ({ score }) => score);
    return { class_name: className, field, suggestions, count: suggestions.length, results };
  }
}

class AtlasFacetedSearchArguments {
  @RequiredText() class_name!: string;
  @RequiredCheckedByData({
    ...OBJECT,
    description: 'Name to { path, type, boundaries, num_buckets }; type string (default), number or date.',
    examples: [{ made: { path: 'createdAt', type: 'date', boundaries: ['2024-01-01', '2025-01-01'] } }],
  })
  facets: unknown;
  @Text('Words to look for. Default: every row.') query = '';
  @ResultCount(MAX_ROWS, 'Rows shown, not buckets: default 10, max 20.') limit = 10;
}

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
    input: AtlasFacetedSearchArguments,
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
  async count(args: AtlasFacetedSearchArguments, call: ToolCall) {
    const { class_name: className, query, limit } = args;
    const { total, facets, hits } = await call.search.facets(className, {
      query,
      facets: args.facets,
      limit,
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
