import { Injectable } from '@nestjs/common';
import {
  ClassName,
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
import { toSourced } from '../shaping/presented-rows.js';
import { READ_ONLY, type ToolCall } from '../tool.js';
import { toFoundRows, searchText } from './found-rows.js';

const MAX_ROWS = 20;

class AtlasTextSearchArguments {
  @ClassName() class_name!: string;
  @GivenText('Words, any of them.') query!: string;
  @TextList('Default: all.') fields?: readonly string[];
  @ResultCount(MAX_ROWS, 'Default 10, max 20.') limit = 10;
  @Text('Shows its matching passages.') highlight_field?: string;
  @JsonObject('As where in query_class.')
  filter?: Readonly<Record<string, unknown>>;
}

@Injectable()
export class AtlasTextSearch {
  @Tool({
    name: 'atlas_text_search',
    title: 'Search by words',
    description:
      'Full-text search over the texts of a class, best rows first. For exact values use query_class, to complete a word atlas_autocomplete. Default filter applies.',
    category: 'query',
    use: 'words',
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
    const rows = toFoundRows(hits, highlightField !== undefined);
    return {
      class_name: className,
      count: rows.length,
      results: toSourced(rows, className, call),
    };
  }
}

class AtlasAutocompleteArguments {
  @ClassName() class_name!: string;
  @GivenText() query!: string;
  @RequiredText() field!: string;
  @ResultCount(MAX_ROWS, 'Default 10, max 20.') limit = 10;
  @Flag('true: forgives one letter.') fuzzy = false;
}

@Injectable()
export class AtlasAutocomplete {
  @Tool({
    name: 'atlas_autocomplete',
    title: 'Complete a word',
    description:
      'Values of a text field that begin with what is typed: the exact spelling for query_class. For whole texts use atlas_text_search.',
    category: 'query',
    use: 'words',
    timeout: 15,
    annotations: READ_ONLY,
    input: AtlasAutocompleteArguments,
    output: objectOf(
      {
        class_name: STRING,
        suggestions: listOf(STRING),
        count: INTEGER,
        results: listOf(OBJECT),
      },
      ['class_name', 'suggestions', 'count', 'results'],
    ),
  })
  async complete(args: AtlasAutocompleteArguments, call: ToolCall) {
    const { class_name: className, field, fuzzy, limit } = args;
    const query = searchText('query', args.query);
    const { suggestions, hits } = await call.search.autocomplete(className, { query, field, fuzzy, limit });
    const results = toFoundRows(hits);
    return { class_name: className, field, suggestions, count: suggestions.length, results };
  }
}

class AtlasFacetedSearchArguments {
  @ClassName() class_name!: string;
  @RequiredCheckedByData({
    ...OBJECT,
    description:
      'Name to { path, type, boundaries, num_buckets }; type string (default), number or date: {"made":{"path":"createdAt","type":"date","boundaries":["2024-01-01","2025-01-01"]}}.',
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
    use: 'facets',
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
    const results = toFoundRows(hits);
    return {
      class_name: className,
      total_count: total,
      facets: Object.fromEntries([...facets].map(([name, buckets]) => [name, { buckets }])),
      count: results.length,
      results,
    };
  }
}
