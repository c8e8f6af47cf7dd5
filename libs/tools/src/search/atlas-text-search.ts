import { Injectable } from '@nestjs/common';
import {
  type Arguments,
  optionalObject,
  optionalString,
  optionalStringList,
  requiredString,
} from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, INTEGER, listOf, OBJECT, objectOf, STRING } from '../json-schema.js';
import { sourced } from '../read/row-source.js';
import { READ_ONLY } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';
import { foundRows } from './found-rows.js';
import { requiredText, resultCount } from './search-arguments.js';

const LIMIT = { fallback: 10, most: 20 };

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
    input: argumentsOf(
      {
        class_name: STRING,
        query: described(STRING, 'Words to look for; any of them.'),
        fields: described(listOf(STRING), 'Fields to search. Default: all that hold text.'),
        limit: described(INTEGER, 'Rows at most: default 10, max 20.'),
        highlight_field: described(STRING, 'Shows the passages of this field that matched.'),
        filter: described(OBJECT, 'Constraint on the rows found, as where in query_class.'),
      },
      ['class_name', 'query'],
    ),
    output: objectOf({ class_name: STRING, count: INTEGER, results: listOf(OBJECT) }, [
      'class_name',
      'count',
      'results',
    ]),
  })
  async search(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const highlightField = optionalString(args, 'highlight_field') || undefined;
    const hits = await call.search.text(className, {
      query: requiredText(args, 'query'),
      fields: optionalStringList(args, 'fields'),
      highlightField,
      filter: optionalObject(args, 'filter'),
      limit: resultCount(args, 'limit', LIMIT),
    });
    const rows = foundRows(hits, ({ score }) => score, highlightField !== undefined);
    return {
      class_name: className,
      count: rows.length,
      results: sourced(rows, className, call),
    };
  }
}
