import { Injectable } from '@nestjs/common';
import { type Arguments, optionalString } from '../arguments/argument-readers.js';
import { Tool } from '../declaration/tool.decorator.js';
import { argumentsOf, described, listOf, mapOf, objectOf, STRING } from '../json-schema.js';
import { PermittedTools } from '../permitted-tools.js';
import { READ_ONLY } from '../read-only-annotations.js';
import type { ToolCall } from '../tool.js';

/** Always all six, so that an agent can choose a category before it knows any tool. */
const CATEGORIES = {
  schema: 'Which classes exist and what their fields mean',
  query: 'Reading and counting objects of a class',
  aggregate: 'Grouping and computing with aggregation pipelines',
  mutation: 'Declared methods and raw changes, where they are permitted',
  export: 'Rows as one CSV, Markdown or text-table artefact',
  custom: 'Tools that the application added',
} as const;

const MOST = 160;

/** The first sentence of a description; the others are read in `tools/list`, with the arguments. */
function inOneLine(description: string): string {
  const [first = ''] = description
    .replaceAll(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.:!?;]) (?=[A-Z])/);
  return first.length <= MOST ? first : `${first.slice(0, MOST - 1)}…`;
}

@Injectable()
export class ListTools {
  constructor(private readonly permitted: PermittedTools) {}

  @Tool({
    name: 'list_tools',
    title: 'List tools',
    description:
      'The tools you may call, by name, category and one line of description; cheaper than loading every input schema.',
    category: 'discovery',
    timeout: 5,
    clientSafe: true,
    annotations: READ_ONLY,
    input: argumentsOf({
      category: described(
        STRING,
        `One category, in any case: ${Object.keys(CATEGORIES).join(', ')}, discovery.`,
      ),
    }),
    output: objectOf(
      {
        tools: listOf(
          objectOf({ name: STRING, category: STRING, description: STRING }, [
            'name',
            'category',
            'description',
          ]),
        ),
        categories: mapOf(STRING),
      },
      ['tools', 'categories'],
    ),
  })
  list(args: Arguments, call: ToolCall) {
    const wanted = optionalString(args, 'category')?.trim().toLowerCase();
    const tools = this.permitted
      .list(call)
      .filter(({ category }) => !wanted || category.toLowerCase() === wanted)
      .map(({ name, category, description }) => ({ name, category, description: inOneLine(description) }));
    return { tools, categories: CATEGORIES };
  }
}
