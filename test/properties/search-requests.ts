import fc from 'fast-check';
import type { Request } from './asked-service.js';
import { anyName, columnsOf, type Json, where } from './constraint-requests.js';
import { type ClassName, type Column, rowId, ROWS } from './vocabulary.js';

type Members = Record<string, fc.Arbitrary<unknown>>;

const optional = <T>(some: fc.Arbitrary<T>) => fc.option(some, { nil: undefined, freq: 2 });

const search = (tool: string, className: fc.Arbitrary<ClassName>, make: (name: ClassName) => Members) =>
  className.chain((name) =>
    fc.record({ class_name: fc.constant(name), ...make(name) }).map((args): Request => {
      const given = Object.entries(args).filter(([, value]) => value !== undefined);
      return { method: 'tools/call', params: { name: tool, arguments: Object.fromEntries(given) } };
    }),
  );

/** Words that many rows hold, some that few do, and the beginnings of marks: how rare a word is differs between two worlds. */
const words = fc.constantFrom(
  'plain',
  'plain 1',
  'plain 1 2 3',
  '2 plain 1',
  'ordinarily',
  'US$5 each',
  'nothing',
);
const begun = fc.constantFrom('pl', 'plain', 'plain 1', 'US', 'ZEK', 'plein');

const textColumns = (name: ClassName) =>
  columnsOf(name).filter(({ kind }) => kind === 'text' || kind === 'texts');
const textField = (name: ClassName) =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...textColumns(name)).map((column) => column.name) },
    { weight: 1, arbitrary: anyName(name) },
  );

const facet = (column: Column): Json => {
  if (column.kind === 'number') return { path: column.name, type: 'number', boundaries: [0, 2, 900_000_000] };
  if (column.kind === 'date')
    return { path: column.name, type: 'date', boundaries: ['2020-01-01', '2030-01-01', '2040-01-01'] };
  return { path: column.name };
};
const facets = (name: ClassName) =>
  fc
    .array(fc.constantFrom(...columnsOf(name)), { minLength: 1, maxLength: 2 })
    .map((columns) =>
      Object.fromEntries(columns.map((column, index) => [`facet${index}`, facet(column)] as const)),
    );

const filter = fc.constantFrom<Json>({ oRCRANK: 2 }, { oRCRANK: { $gt: 1 } }, { orc_org: 'acme' }, {});
const count = optional(fc.integer({ min: 1, max: 20 }));

/** Every tool that searches, with every argument. @param className most often of a class that can be searched by vectors */
export function searches(className: fc.Arbitrary<ClassName>): readonly fc.Arbitrary<Request>[] {
  const searchable = fc.oneof(
    { weight: 6, arbitrary: fc.constant('Orchard' as const) },
    { weight: 1, arbitrary: className },
  );
  return [
    search('atlas_text_search', className, (name) => ({
      query: words,
      fields: optional(fc.array(textField(name), { minLength: 1, maxLength: 3 })),
      limit: count,
      highlight_field: optional(textField(name)),
      filter: optional(where(name, 1)),
    })),
    search('atlas_autocomplete', className, (name) => ({
      query: begun,
      field: textField(name),
      limit: count,
      fuzzy: optional(fc.boolean()),
    })),
    search('atlas_faceted_search', className, (name) => ({
      facets: facets(name),
      query: optional(words),
      limit: count,
    })),
    search('semantic_search', searchable, (name) => ({
      query: words,
      k: count,
      filter: optional(filter),
      vector_filter: optional(filter),
      text_field: optional(textField(name)),
      chunk_size: optional(fc.constantFrom(4, 800)),
      chunk_overlap: optional(fc.constantFrom(1, 2)),
      chunk_by: optional(fc.constantFrom('chars', 'tokens')),
      max_chunks_per_document: optional(fc.constantFrom(1, 200)),
      max_total_tokens: optional(fc.constantFrom(0, 4, 20_000)),
    })),
    search('find_similar', searchable, (name) => ({
      field: optional(fc.oneof(fc.constant('orcVector'), anyName(name))),
      object_id: optional(fc.nat(ROWS - 1).map((index) => rowId(name, index))),
      text: optional(words),
      limit: count,
      where: optional(filter),
    })),
  ];
}

const META = [
  'searchScore',
  'vectorSearchScore',
  'textScore',
  'searchHighlights',
  'searchScoreDetails',
  'indexKey',
  'recordId',
  'sortKey',
  'geoNearPoint',
];

/** Searches and their scores as stages and expressions, which no caller may write. */
export const searchStages: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(
    { $search: { text: { query: 'plain', path: { wildcard: '*' } } } },
    { $searchMeta: { count: { type: 'total' }, exists: { path: '_id' } } },
    {
      $vectorSearch: {
        index: 'default',
        path: 'orcVector',
        queryVector: [1, 2, 1],
        numCandidates: 9,
        limit: 9,
      },
    },
    { $match: { $text: { $search: 'plain' } } },
  ),
  fc.constantFrom(...META).map((name) => ({ $addFields: { x: { $meta: name } } })),
  fc.constantFrom(...META).map((name) => ({ $sort: { x: { $meta: name } } })),
);
