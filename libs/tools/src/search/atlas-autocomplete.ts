import { Injectable } from '@nestjs/common';
import { type Arguments, boolean, requiredString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import {
  argumentsOf,
  BOOLEAN,
  described,
  INTEGER,
  listOf,
  OBJECT,
  objectOf,
  STRING,
} from '../json-schema.js';
import { READ_ONLY } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';
import { foundRows } from './found-rows.js';
import { requiredText, resultCount } from './search-arguments.js';

const LIMIT = { fallback: 10, most: 20 };

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
    input: argumentsOf(
      {
        class_name: STRING,
        query: described(STRING, 'What was typed so far.'),
        field: { ...STRING, description: 'The text field to complete from.', examples: ['objectId'] },
        limit: described(INTEGER, 'Rows at most: default 10, max 20.'),
        fuzzy: described(BOOLEAN, 'true: forgives one letter. Default false.'),
      },
      ['class_name', 'query', 'field'],
    ),
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
  async complete(args: Arguments, call: ToolCall) {
    const className = requiredString(args, 'class_name');
    const field = requiredString(args, 'field');
    const { suggestions, hits } = await call.search.autocomplete(className, {
      query: requiredText(args, 'query'),
      field,
      fuzzy: boolean(args, 'fuzzy', false),
      limit: resultCount(args, 'limit', LIMIT),
    });
    const results = foundRows(hits, ({ score }) => score);
    return { class_name: className, field, suggestions, count: suggestions.length, results };
  }
}
