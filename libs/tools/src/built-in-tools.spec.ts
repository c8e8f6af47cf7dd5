import { compileAgentShape } from '#agent';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { BUILT_IN_TOOLS } from './built-in-tools.js';
import { toolDeclarations } from './declaration/tool.decorator.js';
import type { ToolDefinition } from './tool.js';

const definitions = BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)).map(
  (declaration) => declaration.definition,
);
const named = (name: string) => definitions.find((definition) => definition.name === name) as ToolDefinition;

/** What tools/list says of a tool. */
const descriptor = ({
  name,
  title,
  description,
  inputSchema,
  outputSchema,
  annotations,
  category,
}: ToolDefinition) => ({
  name,
  title,
  description,
  inputSchema,
  outputSchema,
  annotations,
  _meta: { category },
});

describe('the built-in catalogue', () => {
  it.each([
    ['list_tools', 'discovery', 5, true],
    ['get_all_schemas', 'schema', 15, false],
    ['get_schema', 'schema', 10, false],
    ['query_class', 'query', 30, true],
    ['count_objects', 'query', 20, true],
    ['get_object', 'query', 10, true],
    ['get_objects', 'query', 20, true],
    ['get_sample_objects', 'query', 15, true],
    ['explain_query', 'query', 30, false],
    ['aggregate', 'aggregate', 60, false],
    ['group_by', 'aggregate', 45, false],
    ['group_by_date', 'aggregate', 45, false],
    ['distinct', 'aggregate', 30, false],
    ['export_data', 'export', 60, false],
  ])('%s is of category %s, gives up after %d s, client-safe: %s', (name, category, timeout, clientSafe) => {
    expect(named(name)).toMatchObject({ category, timeout, clientSafe, permission: 'readonly' });
  });

  it('holds one tool per provider, in catalogue order', () => {
    expect(definitions.map(({ name }) => name)).toEqual([
      'list_tools',
      'get_all_schemas',
      'get_schema',
      'query_class',
      'count_objects',
      'get_object',
      'get_objects',
      'get_sample_objects',
      'explain_query',
      'aggregate',
      'group_by',
      'group_by_date',
      'distinct',
      'export_data',
    ]);
  });

  it.each(definitions.map((definition) => [definition.name, definition] as const))(
    '%s tells hosts that it only reads, titles itself, and has schemas that compile',
    (_, { title, annotations, inputSchema, outputSchema }) => {
      const ajv = new Ajv2020({ strict: true, strictRequired: true });
      expect(annotations).toEqual({ readOnlyHint: true, idempotentHint: true, openWorldHint: false, title });
      expect(title).toMatch(/\S/);
      expect(inputSchema).toMatchObject({ type: 'object', required: expect.any(Array) });
      expect(outputSchema).toMatchObject({ type: 'object', required: expect.any(Array) });
      expect(() => [ajv.compile(inputSchema), ajv.compile(outputSchema as object)]).not.toThrow();
    },
  );

  it('answers tools/list of the lean profile in 2,000 tokens of four bytes, envelope included', () => {
    const lean = compileAgentShape('lean', { tools: { profile: 'lean' } }).tools;
    const tools = definitions.filter(({ name }) => lean.permits(name)).map(descriptor);
    const serverInfo = { name: 'parley', version: '0.1.0' };
    const result = {
      resultType: 'complete',
      tools,
      ttlMs: 300_000,
      cacheScope: 'private',
      _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, result });
    expect(tools).toHaveLength(6);
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(8_000);
  });
});
