import { Logger } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import {
  BUILT_IN_TOOLS,
  defineTool,
  ToolCatalogue,
  toolDeclarations,
  type ToolDefinition,
  vendorWarning,
} from '#tools';
import { ParcelTools } from '../examples/behind-a-proxy/src/parcel.tools.js';
import { CountingTools } from '../examples/custom-tools/src/counting.tools.js';
import { DeliveryTools } from '../examples/custom-tools/src/delivery.tools.js';
import { SeasonTools } from '../examples/custom-tools/src/season.tools.js';
import { StockTools } from '../examples/custom-tools/src/stock.tools.js';
import { QuoteTools } from '../examples/existing-application/src/agents/quote-tools.js';
import { ResearchTools } from '../examples/sub-agents/src/research.tools.js';

const listDefinitions = (providers: readonly { readonly prototype: object }[]) =>
  providers.flatMap(({ prototype }) => toolDeclarations(prototype)).map(({ definition }) => definition);
const builtIn = listDefinitions(BUILT_IN_TOOLS);
const ofExamples = listDefinitions([
  ParcelTools,
  CountingTools,
  DeliveryTools,
  SeasonTools,
  StockTools,
  QuoteTools,
  ResearchTools,
]);

type Rule = readonly [vendor: string, rule: string, source: string, keeps: (tool: ToolDefinition) => boolean];

const SERVER = 'parley';
const isLengthWithin = (max: number, prefix: string) => (tool: ToolDefinition) =>
  `${prefix}${tool.name}`.length <= max;

type Part = Readonly<Record<string, unknown>>;
const mayBe = (part: Part, type: string) => part['type'] === type || [part['type']].flat().includes(type);
const hasPart = (schema: unknown, is: (part: Part) => boolean): boolean =>
  typeof schema === 'object' &&
  schema !== null &&
  (is(schema as Part) || Object.values(schema).some((part) => hasPart(part, is)));

const RULES: readonly Rule[] = [
  [
    'OpenAI',
    'names of 1 to 64 letters, digits, _ and -',
    'platform.openai.com/docs/api-reference/chat/create, tools[].function.name',
    ({ name }) => /^[a-zA-Z0-9_-]{1,64}$/.test(name),
  ],
  [
    'OpenAI',
    'descriptions of at most 1,024 characters',
    'answer of the API: "Invalid \'tools[5].function.description\': string too long"',
    ({ description }) => description.length <= 1024,
  ],
  [
    'OpenAI',
    'an input of type object with properties',
    'answer of the API: "object schema missing properties"',
    ({ inputSchema }) => inputSchema['type'] === 'object' && inputSchema['properties'] !== undefined,
  ],
  [
    'OpenAI',
    'an input without oneOf, anyOf, allOf, enum and not at its top',
    'github.com/langchain-ai/langchainjs/issues/9804',
    ({ inputSchema }) =>
      ['oneOf', 'anyOf', 'allOf', 'enum', 'not'].every((keyword) => !(keyword in inputSchema)),
  ],
  [
    'OpenAI',
    'arrays that say what they hold',
    'github.com/digitalocean-labs/mcp-digitalocean/issues/265',
    ({ inputSchema }) => !hasPart(inputSchema, (part) => mayBe(part, 'array') && part['items'] === undefined),
  ],
  [
    'Anthropic',
    'arguments of 1 to 64 letters, digits, _, . and -',
    'github.com/beautyfree/appstore-connect-mcp/issues/2',
    ({ inputSchema }) =>
      Object.keys(inputSchema['properties'] as object).every((name) => /^[a-zA-Z0-9_.-]{1,64}$/.test(name)),
  ],
  [
    'Anthropic',
    'no $ref in an input',
    'platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes',
    ({ inputSchema }) => !hasPart(inputSchema, (part) => part['$ref'] !== undefined),
  ],
  [
    'Anthropic',
    'names of letters, digits, _ and -, at most 64 (128 since 2025)',
    'answer of the API: "tools.0.custom.name: String should match pattern \'^[a-zA-Z0-9_-]{1,64}$\'"',
    ({ name }) => /^[a-zA-Z0-9_-]{1,64}$/.test(name),
  ],
  [
    'Anthropic',
    'no anyOf, oneOf or allOf at the top of an input',
    'answer of the API: "input_schema does not support oneOf, allOf, or anyOf at the top level"',
    ({ inputSchema }) => ['anyOf', 'oneOf', 'allOf'].every((keyword) => !(keyword in inputSchema)),
  ],
  [
    'Gemini',
    'names that begin with a letter or _, at most 64',
    'cloud.google.com/vertex-ai, FunctionDeclaration.name',
    ({ name }) => /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/.test(name),
  ],
  [
    'Cursor',
    'the names of server and tool together within 60 characters',
    'github.com/awslabs/mcp/issues/1283',
    isLengthWithin(60, `${SERVER}:`),
  ],
  [
    'VS Code',
    'names within 64 characters behind the prefix mcp_SERVER_',
    'github.com/microsoft/vscode/issues/243602',
    isLengthWithin(64, `mcp_${SERVER}_`),
  ],
];

/**
 * Fields of Gemini's Schema (cloud.google.com/vertex-ai/docs/reference/rest/v1/Schema), and `additionalProperties`, which
 * its older endpoint lacks and clients remove.
 */
const GEMINI_FIELDS = new Set([
  'type',
  'format',
  'title',
  'description',
  'nullable',
  'default',
  'items',
  'minItems',
  'maxItems',
  'enum',
  'properties',
  'required',
  'minProperties',
  'maxProperties',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'anyOf',
  'additionalProperties',
]);

/** Keywords outside the set, and parts without one type: `path.keyword`. */
function listForeign(schema: unknown, path: string): string[] {
  if (schema === null || typeof schema !== 'object') return [];
  const { properties = {}, items, anyOf, additionalProperties, ...rest } = schema as Record<string, unknown>;
  return [
    ...Object.keys(rest).flatMap((keyword) => (GEMINI_FIELDS.has(keyword) ? [] : [`${path}.${keyword}`])),
    ...(typeof rest['type'] === 'string' || anyOf !== undefined ? [] : [`${path} has no single type`]),
    ...Object.entries(properties as object).flatMap(([name, part]) => listForeign(part, `${path}.${name}`)),
    ...[items, additionalProperties, ...((anyOf as unknown[] | undefined) ?? [])].flatMap((part) =>
      listForeign(part, path),
    ),
  ];
}

describe('what vendors and hosts demand of tools', () => {
  it.each(RULES)('%s: %s (%s): every built-in tool and every tool of the examples', (_v, _r, _s, keeps) => {
    const broken = [...builtIn, ...ofExamples].filter((tool) => !keeps(tool));
    expect(broken.map(({ name }) => name)).toEqual([]);
    expect(ofExamples.length).toBeGreaterThan(8);
  });

  it('OpenAI: at most 128 tools in a request (github.com/vishalmysore/Tools4AI/issues/16): the built-in ones are fewer than half', () => {
    expect(builtIn.length).toBeLessThan(64);
  });

  it('Gemini: inputs of built-in tools have only keywords of its schema, and one type in each part', () => {
    expect(builtIn.flatMap(({ name, inputSchema }) => listForeign(inputSchema, name))).toEqual([]);
  });
});

const OPEN = { type: 'object' };
const definedAs = (options: object) => {
  const catalogue = new ToolCatalogue();
  const tool = defineTool({ name: 'due', description: 'What is due.', ...options });
  catalogue.register({ ...tool, handler: (args) => args });
  return catalogue.get(tool.definition.name)?.definition;
};

describe('a tool of the application', () => {
  it('has properties in its input, whether it declares them or not', () => {
    expect(definedAs({ input: OPEN })?.inputSchema).toEqual({ type: 'object', required: [], properties: {} });
    const { definition } = defineTool({ name: 'due', description: 'd' });
    const catalogue = new ToolCatalogue();
    catalogue.register({ definition: { ...definition, inputSchema: OPEN }, handler: () => 1 });
    expect(catalogue.get('due')?.definition.inputSchema).toMatchObject({ properties: {} });
  });

  it('without an input takes no arguments, and says so to clients', async () => {
    expect(definedAs({})?.inputSchema).toMatchObject({ properties: {}, additionalProperties: false });
  });

  it.each([
    ['reports.monthly', { name: 'reports.monthly' }, 'the name is not 1 to 64'],
    ['a name of 65 characters', { name: 'n'.repeat(65) }, 'the name is not 1 to 64'],
    ['a name that begins with a digit', { name: '1st' }, 'the name is not 1 to 64'],
    ['a description of 1,025', { description: 'd'.repeat(1025) }, 'the description has 1025 characters'],
    [
      'an argument with brackets',
      { input: { ...OPEN, properties: { 'filter[id]': {} } } },
      "the argument 'filter[id]' is not",
    ],
    [
      'an input with a reference',
      { input: { ...OPEN, properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { type: 'string' } } } },
      'the input has a $ref',
    ],
    ['an input of alternatives', { input: { ...OPEN, anyOf: [OPEN] } }, 'the input has anyOf'],
  ])('that vendors refuse is served, with one warning: %s', (_title, options, reason) => {
    const warned = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const definition = definedAs(options) as ToolDefinition;
    expect(vendorWarning(definition)).toContain(reason);
    expect(warned.mock.calls).toEqual([[`tool '${definition.name}': ${vendorWarning(definition)}`]]);
    warned.mockRestore();
  });

  it('that vendors accept is registered without a warning', () => {
    const warned = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    definedAs({ name: 'n'.repeat(64), description: 'd'.repeat(1024) });
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });
});
