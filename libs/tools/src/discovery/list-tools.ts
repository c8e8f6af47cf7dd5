import { cutText } from '#core';
import { Injectable } from '@nestjs/common';
import { Text, WholeNumber } from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { listOf, mapOf, objectOf, STRING } from '../json-schema.js';
import { PermittedTools, READ_ONLY, type ToolCall } from '../tool.js';

/** Always all of them, so that an agent can choose a category before it has listed tools. */
const CATEGORIES = {
  schema: 'Which classes exist and what their fields mean',
  query: 'Reading and counting objects of a class',
  aggregate: 'Grouping and computing with aggregation pipelines',
  mutation: 'Declared methods and raw changes, where they are permitted',
  export: 'Rows as one CSV, Markdown or text-table artefact',
  custom: 'Tools that the application added',
  discovery: 'Which tools there are',
} as const;
/** Of a category that the application named itself. */
const NAMED_BY_APPLICATION = 'Tools of the application in this category';

const MAX_SUMMARY_LENGTH = 160;

/** The first sentence of a description; `tools/list` returns the whole text with the arguments. */
function inOneLine(description: string): string {
  const [first = ''] = description
    .replaceAll(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.:!?;]) (?=[A-Z])/);
  return first.length <= MAX_SUMMARY_LENGTH ? first : `${cutText(first, MAX_SUMMARY_LENGTH - 1)}…`;
}

class ListToolsArguments {
  @Text(`${Object.keys(CATEGORIES).join(', ')}.`) category?: string;
  @WholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER }) skip = 0;
}

@Injectable()
export class ListTools {
  constructor(private readonly permitted: PermittedTools) {}

  @Tool({
    name: 'list_tools',
    title: 'List tools',
    description: 'The tools you may call.',
    category: 'discovery',
    timeout: 5,
    clientSafe: true,
    annotations: READ_ONLY,
    input: ListToolsArguments,
    output: objectOf(
      {
        tools: listOf(objectOf({ name: STRING, category: STRING }, ['name'])),
        categories: mapOf(STRING),
      },
      ['tools', 'categories'],
    ),
  })
  async list(args: ListToolsArguments, call: ToolCall) {
    const lowerCase = args.category?.trim().toLowerCase();
    const permitted = await this.permitted.listTools(call);
    const named = permitted
      .map(({ category }) => category)
      .filter((category) => !Object.hasOwn(CATEGORIES, category));
    const tools = permitted
      .filter(({ category }) => !lowerCase || category.toLowerCase() === lowerCase)
      .slice(args.skip)
      .map(({ name, category, description }) => ({ name, category, description: inOneLine(description) }));
    return {
      tools,
      categories: {
        ...CATEGORIES,
        ...Object.fromEntries(named.map((category) => [category, NAMED_BY_APPLICATION])),
      },
    };
  }
}
