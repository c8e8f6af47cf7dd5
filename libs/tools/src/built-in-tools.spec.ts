import { compileAgentDefinition } from '#core';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { BUILT_IN_TOOLS } from './built-in-tools.js';
import { toolDeclarations } from './declaration/tool.decorator.js';
import type { ToolDefinition } from './tool.js';

const definitions = BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)).map(
  (declaration) => declaration.definition,
);
const named = (name: string) => definitions.find((definition) => definition.name === name) as ToolDefinition;

/** The `tools/list` entry of a tool. */
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
    ['list_tools', 'discovery', 5, true, 'readonly'],
    ['get_all_schemas', 'schema', 15, false, 'readonly'],
    ['get_schema', 'schema', 10, false, 'readonly'],
    ['query_class', 'query', 30, true, 'readonly'],
    ['count_objects', 'query', 20, true, 'readonly'],
    ['get_object', 'query', 10, true, 'readonly'],
    ['get_objects', 'query', 20, true, 'readonly'],
    ['get_sample_objects', 'query', 15, true, 'readonly'],
    ['explain_query', 'query', 30, false, 'readonly'],
    ['aggregate', 'aggregate', 60, false, 'readonly'],
    ['group_by', 'aggregate', 45, false, 'readonly'],
    ['group_by_date', 'aggregate', 45, false, 'readonly'],
    ['distinct', 'aggregate', 30, false, 'readonly'],
    ['export_data', 'export', 60, false, 'readonly'],
    ['call_method', 'mutation', 60, false, 'readonly'],
    ['atlas_text_search', 'query', 30, false, 'readonly'],
    ['atlas_autocomplete', 'query', 15, false, 'readonly'],
    ['atlas_faceted_search', 'query', 45, false, 'readonly'],
    ['semantic_search', 'query', 30, true, 'readonly'],
    ['find_similar', 'query', 30, false, 'readonly'],
    ['create_object', 'mutation', 30, true, 'write'],
    ['update_object', 'mutation', 30, true, 'write'],
    ['delete_object', 'mutation', 30, true, 'admin'],
    ['create_class', 'mutation', 30, false, 'admin'],
    ['delete_class', 'mutation', 30, false, 'admin'],
  ])(
    '%s is of category %s, gives up after %d s, client-safe: %s, for tier %s',
    (name, category, timeout, clientSafe, permission) => {
      expect(named(name)).toMatchObject({ category, timeout, clientSafe, permission });
    },
  );

  it.each([
    ['call_method', ['methods'], true],
    ['create_object', ['rows'], false],
    ['update_object', ['rows'], true],
    ['delete_object', ['rows'], true],
    ['create_class', ['classes'], false],
    ['delete_class', ['classes'], true],
  ])('%s needs %j and no more, and tells hosts whether it destroys', (name, needs, destructiveHint) => {
    expect(named(name)).toMatchObject({ needs, annotations: { readOnlyHint: false, destructiveHint } });
  });

  it('gives access to writing to no tool that a readonly agent may list, but call_method', () => {
    const readers = definitions.filter(
      ({ permission, name }) => permission === 'readonly' && name !== 'call_method',
    );
    expect(readers.flatMap(({ needs = [] }) => needs)).toEqual([]);
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
      'call_method',
      'atlas_text_search',
      'atlas_autocomplete',
      'atlas_faceted_search',
      'semantic_search',
      'find_similar',
      'create_object',
      'update_object',
      'delete_object',
      'create_class',
      'delete_class',
      'list_changes',
      'show_changes',
      'discard_changes',
      'refresh_changes',
      'submit_changes',
      'undo_changes',
    ]);
  });

  it.each(definitions.map((definition) => [definition.name, definition] as const))(
    '%s tells hosts whether it only reads, titles itself, and has schemas that compile',
    (name, { title, annotations, inputSchema, outputSchema, needs, category }) => {
      const ajv = new Ajv2020({ strict: true, strictRequired: true });
      const changesSets = category === 'changes' && !['list_changes', 'show_changes'].includes(name);
      if (needs || changesSets) expect(annotations).toMatchObject({ readOnlyHint: false, title });
      else
        expect(annotations).toEqual({
          readOnlyHint: true,
          idempotentHint: true,
          // Search texts of these tools may be sent to the embeddings endpoint.
          openWorldHint: name === 'semantic_search' || name === 'find_similar',
          title,
        });
      expect(title).toMatch(/\S/);
      expect(inputSchema).toMatchObject({ type: 'object', required: expect.any(Array) });
      expect(outputSchema).toMatchObject({ type: 'object', required: expect.any(Array) });
      expect(() => [ajv.compile(inputSchema), ajv.compile(outputSchema as object)]).not.toThrow();
    },
  );

  it('says of every value of an answer what it can be', () => {
    const open: string[] = [];
    const visit = (schema: unknown, path: string): void => {
      if (schema === null || typeof schema !== 'object') return;
      if (!Array.isArray(schema) && Object.keys(schema).length === 0) open.push(path);
      for (const [key, member] of Object.entries(schema))
        if (!(key === 'properties' && Object.keys(member as object).length === 0))
          visit(member, `${path}.${key}`);
    };
    for (const { name, outputSchema } of definitions) visit(outputSchema, name);
    expect(open).toEqual([]);
  });

  it('answers tools/list of the lean profile in 2,000 tokens of four bytes, envelope included', () => {
    const lean = compileAgentDefinition('lean', { tools: { profile: 'lean' } }).tools;
    const tools = definitions.filter(({ name }) => lean.permits(name)).map(descriptor);
    const serverInfo = { name: 'parley', version: '1.0.0' };
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
