import { Test } from '@nestjs/testing';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Embedding, EmbeddingProvider, type ParseRow, QueryEmbeddings } from '#data';
import { type FieldType, readEnvironmentGates } from '#policy';
import { BUILT_IN_TOOLS } from './built-in-tools.js';
import {
  callOf,
  sampleClass,
  SampleExportStore,
  SampleRecords,
  SampleSearch,
  switches,
} from './contracts/sample-records.js';
import { Changes } from './changes/changes.js';
import { ExportStore } from './export/export-files.js';
import { toolsOf } from './declaration/tool.decorator.js';
import { CallableMethods, MethodRegistry } from './methods/method-registry.js';
import { createReadingHandler } from './registry/tool-registry.js';
import { fitToSize } from './shaping/fit-to-size.js';
import { PermittedTools, type ToolDefinition, ToolEnvironment } from './tool.js';

/** The simplest vector of a text: its length. */
class LetterEmbeddings extends EmbeddingProvider {
  readonly model = 'letters';
  readonly dimensions = 2;

  embed(text: string): Promise<Embedding> {
    return Promise.resolve({ vector: [text.length, 1], tokens: 1 });
  }
}

const definitions: ToolDefinition[] = [];

/** Every provider as Nest creates it for an application, from its injected ports. */
async function providers(): Promise<object[]> {
  const module = await Test.createTestingModule({
    providers: [
      ...BUILT_IN_TOOLS,
      { provide: PermittedTools, useValue: { list: () => definitions, listTools: () => definitions } },
      { provide: CallableMethods, useClass: MethodRegistry },
      { provide: ToolEnvironment, useValue: readEnvironmentGates({}) },
      { provide: ExportStore, useClass: SampleExportStore },
      // None of these calls is of an agent whose writes are proposed.
      { provide: Changes, useValue: {} },
      { provide: QueryEmbeddings, useFactory: () => new QueryEmbeddings(new LetterEmbeddings()) },
    ],
  }).compile();
  return BUILT_IN_TOOLS.map((provider) => module.get<object>(provider));
}

const value = fc.oneof(
  fc.string(),
  fc.double(),
  fc.constant(null),
  fc.constantFrom<object>(
    { __type: 'Date', iso: '2024-01-01T00:00:00.000Z' },
    { __type: 'Pointer', className: 'Post', objectId: 'p' },
    { className: 'Hidden', __redacted: true },
    [{ ACL: {} }],
  ),
);
const name = fc.constantFrom('title', '_p_author', '_source', 'body', '_id', 'results');
const rows: fc.Arbitrary<ParseRow[]> = fc
  .array(fc.dictionary(name, value, { maxKeys: 4 }), { maxLength: 70 })
  .map((list) =>
    list.map((row, index) => ({ ...row, objectId: `r${index}`, createdAt: 'c', updatedAt: 'u' })),
  );

const field = fc.record({
  type: fc.constantFrom<FieldType>('String', 'Pointer', 'Relation', 'Array', 'ACL'),
  targetClass: fc.constantFrom('Post', 'Hidden'),
  required: fc.boolean(),
  defaultValue: value,
});
const known = fc
  .record({
    fields: fc.dictionary(fc.constantFrom('title', 'author', 'bad name'), field),
    allowed: fc.constantFrom(null, ['title'], []),
    text: fc.constantFrom(null, 'About', '</schema_description>'),
    rule: fc.constantFrom(null, { find: { '*': true }, get: true, update: { pointerFields: ['title'] } }),
  })
  .map(({ fields, allowed, text, rule }) =>
    sampleClass(
      'Post',
      fields,
      {
        fields: allowed,
        description: text,
        usage: text,
        largeFields: ['title'],
        canonicalFilter: text ? {} : null,
      },
      { classLevelPermissions: rule, indexes: [{ name: 'i', fields: ['title'], unique: true }] },
    ),
  );

const args = fc.record(
  {
    class_name: fc.constant('Post'),
    object_id: fc.constant('r0'),
    ids: fc.subarray(['r0', 'r1', 'zz', '__proto__']),
    pipeline: fc.constantFrom<object[]>([{ $match: {} }], [{ $group: { _id: '$title' } }]),
    limit: fc.integer({ min: 1, max: 60 }),
    format: fc.constantFrom('csv', 'table'),
    field: fc.constantFrom('createdAt', 'updatedAt'),
    interval: fc.constantFrom('year', 'week', 'second'),
    operation: fc.constantFrom('count', 'avg'),
    value_field: fc.constant('title'),
    flatten_arrays: fc.boolean(),
    dry_run: fc.boolean(),
    columns: fc.constantFrom<unknown[]>([], ['title', { body: 'Text' }]),
    row_cap: fc.integer({ min: 1, max: 60 }),
    where: fc.constant({ title: 'x' }),
    query: fc.constantFrom('x', 'two words'),
    facets: fc.constant({ title: { path: 'title' } }),
    highlight_field: fc.constant('title'),
    max_total_tokens: fc.integer({ min: 0, max: 3 }),
    chunk_size: fc.integer({ min: 1, max: 5 }),
  },
  {
    requiredKeys: [
      ...(['class_name', 'object_id', 'ids', 'pipeline', 'field'] as const),
      ...(['interval', 'value_field', 'query', 'facets'] as const),
    ],
  },
);

describe('every built-in tool that reads', () => {
  it.each([false, true])(
    'answers as its output schema says, cut to size or not (provenance: %s)',
    async (stamped) => {
      const ajv = new Ajv2020({ strict: false });
      const tools = (await providers()).flatMap((provider) => {
        const [registration] = toolsOf(provider);
        if (!registration) throw new Error('a provider without a tool');
        const { definition } = registration;
        const handler = createReadingHandler(registration);
        if (definition.needs || definition.category === 'changes') return [];
        definitions.push(definition);
        return [{ provider, definition, handler, validate: ajv.compile(definition.outputSchema as object) }];
      });
      const cap = fc.constantFrom(1_500, 4_000, 4_194_304);
      await fc.assert(
        fc.asyncProperty(
          rows,
          known,
          args,
          cap,
          fc.boolean(),
          fc.boolean(),
          async (list, described, given, bytes, autoLimited, pretty) => {
            const records = new SampleRecords([{ objectId: 'r0' }, ...list.slice(1)], [described]);
            records.autoLimited = autoLimited;
            for (const { provider, definition, handler, validate } of tools) {
              const search = new SampleSearch(list);
              const call = Object.assign(callOf(provider, records, 'readonly', search), {
                switches: switches({ includeSourceProvenance: stamped, prettyText: pretty }),
              });
              // The one tool whose `field` is a vector.
              const asked = definition.name === 'find_similar' ? { ...given, field: 'vector' } : given;
              const data = await handler(asked, call);
              const sent = fitToSize(definition.name, data, { cap: bytes, pretty });
              const wire: unknown = 'text' in sent ? JSON.parse(sent.text) : JSON.parse(JSON.stringify(data));
              expect(validate(wire) ? [] : [definition.name, wire, validate.errors]).toEqual([]);
            }
          },
        ),
        { numRuns: 60 },
      );
    },
  );
});
