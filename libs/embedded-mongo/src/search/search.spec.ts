import { Binary, type Collection, type Db, Decimal128, type Document, Long, MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '../embedded-mongo.js';
import { editDistance, listTerms } from './corpus.js';

import fc from 'fast-check';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let server: EmbeddedMongo;
let client: MongoClient;
let db: Db;
let films: Collection<Document & { _id: number }>;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = await MongoClient.connect(server.uri);
  db = client.db('search');
  films = db.collection('films');
  await films.insertMany([
    {
      _id: 1,
      title: 'Night train',
      plot: 'A train leaves. Nobody is on the train at night.',
      year: 1990,
      genres: ['drama'],
      v: [1, 0],
      out: false,
    },
    {
      _id: 2,
      title: 'Morning train',
      plot: 'A long walk.',
      year: 2001,
      genres: ['drama', 'comedy'],
      v: [0.8, 0.6],
      out: true,
    },
    {
      _id: 3,
      title: 'Nightingale',
      plot: 'A bird sings in the morning.',
      year: 2010,
      genres: ['comedy'],
      v: [0, 1],
      secret: { note: 'train' },
    },
    {
      _id: 4,
      title: 'Silence',
      plot: 'Nothing is heard, or said.',
      year: 2015,
      genres: [],
      cast: [{ name: 'Ada' }, { name: 'Night Owl' }],
    },
  ]);
});
afterAll(async () => {
  await client.close();
  await server.close();
});

const searchTitles = async (search: Document, ...rest: Document[]) =>
  (await films.aggregate([{ $search: search }, ...rest]).toArray()).map(({ _id }) => _id);
const readError = (pipeline: Document[]) =>
  films
    .aggregate(pipeline)
    .toArray()
    .then(
      () => null,
      (error: { code: number }) => error.code,
    );

describe('$search', () => {
  it('finds any of the words in any of the paths, the best first', async () => {
    expect(await searchTitles({ text: { query: 'night train', path: ['title', 'plot'] } })).toEqual([1, 2]);
    expect(await searchTitles({ text: { query: 'MORNING', path: 'title' } })).toEqual([2]);
    expect(await searchTitles({ text: { query: 'night', path: 'cast.name' } })).toEqual([4]);
  });

  it('finds every word when all are asked for', async () => {
    expect(
      await searchTitles({ text: { query: 'night train', path: 'title', matchCriteria: 'all' } }),
    ).toEqual([1]);
  });

  it('looks only where it is told to', async () => {
    expect(await searchTitles({ text: { query: 'train', path: 'plot' } })).toEqual([1]);
    expect(await searchTitles({ text: { query: 'train', path: { wildcard: 'sec*' } } })).toEqual([3]);
    expect(new Set(await searchTitles({ text: { query: 'train', path: { wildcard: '*' } } }))).toEqual(
      new Set([1, 2, 3]),
    );
  });

  it('forgives as many letters as it is told to', async () => {
    expect(await searchTitles({ text: { query: 'trian', path: 'title' } })).toEqual([]);
    expect(
      await searchTitles({ text: { query: 'trian', path: 'title', fuzzy: { maxEdits: 1 } } }),
    ).toHaveLength(2);
    const kept = { maxEdits: 2, prefixLength: 3 };
    expect(await searchTitles({ text: { query: 'brain', path: 'title', fuzzy: kept } })).toEqual([]);
  });

  it('finds phrases in their order', async () => {
    expect(await searchTitles({ phrase: { query: 'a train', path: 'plot' } })).toEqual([1]);
    expect(await searchTitles({ phrase: { query: 'train a', path: 'plot' } })).toEqual([]);
  });

  it('completes words, in order when asked to', async () => {
    expect(new Set(await searchTitles({ autocomplete: { query: 'nig', path: 'title' } }))).toEqual(
      new Set([1, 3]),
    );
    expect(await searchTitles({ autocomplete: { query: 'tra nig', path: 'title' } })).toEqual([1]);
    expect(
      await searchTitles({ autocomplete: { query: 'tra nig', path: 'title', tokenOrder: 'sequential' } }),
    ).toEqual([]);
    expect(
      await searchTitles({ autocomplete: { query: 'nihg', path: 'title', fuzzy: { maxEdits: 1 } } }),
    ).not.toEqual([]);
    for (const query of ['nightigal', 'nighttingal'])
      expect(await searchTitles({ autocomplete: { query, path: 'title', fuzzy: { maxEdits: 1 } } })).toEqual([
        3,
      ]);
  });

  it('finds nothing at a path that names no field', async () => {
    for (const path of ['', '$title']) {
      expect(await searchTitles({ text: { query: 'train', path } })).toEqual([]);
      expect(await searchTitles({ exists: { path } })).toEqual([]);
    }
  });

  it('finds nothing in a collection whose declared indexes have other names', async () => {
    const declared = db.collection<Document & { _id: number }>('declared');
    await declared.insertMany([{ _id: 1, a: 'word', v: [1, 0] }]);
    await declared.createSearchIndex({ name: 'own', definition: { mappings: { dynamic: true } } });
    const exists = { path: 'a' };
    const found = (stage: Document) => declared.aggregate([stage]).toArray();
    expect(await found({ $search: { index: 'own', exists } })).toHaveLength(1);
    expect(await found({ $search: { index: 'other', exists, sort: null } })).toEqual([]);
    expect(await found({ $searchMeta: { exists } })).toEqual([{ count: { total: 0 } }]);
    expect(await found(nearest())).toHaveLength(1);
    await declared.createSearchIndex({ name: 'near', type: 'vectorSearch', definition: { fields: [] } });
    expect(await found(nearest())).toEqual([]);
  });

  it('compares numbers as doubles, finds null where it is stored, and nothing that is not finite', async () => {
    const values = [Long.fromString('9007199254740993'), 2 ** 53, NaN, Infinity, null];
    await db.collection('values').insertMany([...values.map((value) => ({ value })), { other: 1 }]);
    const found = (value: unknown) =>
      db
        .collection('values')
        .aggregate([{ $search: { equals: { path: 'value', value, doesNotAffect: 'a' } } }])
        .toArray();
    expect(await found(2 ** 53)).toHaveLength(2);
    expect(await found(null)).toHaveLength(1);
    for (const value of [NaN, Infinity]) expect(await found(value)).toEqual([]);
  });

  it('joins clauses as compound says', async () => {
    const night = { text: { query: 'train', path: 'title' } };
    const early = { text: { query: 'morning', path: 'title' } };
    expect(await searchTitles({ compound: { must: [night], mustNot: [early] } })).toEqual([1]);
    expect(await searchTitles({ compound: { must: [night], should: early } })).toEqual([2, 1]);
    expect(await searchTitles({ compound: { should: [night, early], minimumShouldMatch: 2 } })).toEqual([2]);
    expect(
      await searchTitles({ compound: { filter: [{ equals: { path: 'out', value: true } }], must: [night] } }),
    ).toEqual([2]);
    expect(await searchTitles({ compound: { filter: [{ exists: { path: 'cast' } }] } })).toEqual([4]);
  });

  it.each([
    ['without a search', [], { $meta: 'searchScore' }],
    [
      'of highlights not asked for',
      [{ $search: { exists: { path: '_id' } } }],
      { $meta: 'searchHighlights' },
    ],
    [
      'of grouped rows',
      [{ $search: { exists: { path: '_id' } } }, { $group: { _id: 1 } }],
      { $meta: 'searchScore' },
    ],
  ])('has no metadata %s', async (_title, stages, s) => {
    const [row] = await films.aggregate([...stages, { $project: { s } }]).toArray();
    expect(row).not.toHaveProperty('s');
  });

  it('passes scores through stages that make another document of one', async () => {
    const stages = [{ $set: { parts: [1, 2] } }, { $unwind: '$parts' }, { $replaceWith: { of: '$_id' } }];
    const shown = { $project: { of: 1, s: { $gt: [{ $meta: 'searchScore' }, 0] } } };
    const search = { $search: { exists: { path: 'cast' } } };
    expect(await films.aggregate([search, ...stages, shown]).toArray()).toEqual([
      { of: 4, s: true },
      { of: 4, s: true },
    ]);
  });

  it('passes scores and highlights to later stages that keep the documents', async () => {
    const search = { text: { query: 'train', path: 'plot' }, highlight: { path: 'plot' } };
    const shown = { score: { $meta: 'searchScore' }, marks: { $meta: 'searchHighlights' } };
    for (const stage of [{ $project: shown }, { $addFields: shown }]) {
      const [row] = await films
        .aggregate([{ $search: search }, { $match: { year: 1990 } }, { $limit: 3 }, stage])
        .toArray();
      expect(row?.['score']).toBeGreaterThan(0);
      expect(row?.['marks']).toEqual([
        {
          score: 1,
          path: 'plot',
          texts: [
            { value: 'A ', type: 'text' },
            { value: 'train', type: 'hit' },
            { value: ' leaves. ', type: 'text' },
          ],
        },
        {
          score: 1,
          path: 'plot',
          texts: [
            { value: 'Nobody is on the ', type: 'text' },
            { value: 'train', type: 'hit' },
            { value: ' at night.', type: 'text' },
          ],
        },
      ]);
    }
  });

  it('weighs a clause by its score modifier', async () => {
    const clause = (query: string, score: Document) => ({ text: { query, path: 'title', score } });
    const search = {
      compound: {
        should: [
          clause('silence', { constant: { value: 1 } }),
          clause('nightingale', { constant: { value: 9 } }),
        ],
      },
    };
    expect(await searchTitles(search)).toEqual([3, 4]);
  });

  it('searches the other collection in a join', async () => {
    const pipeline = [{ $search: { text: { query: 'silence', path: 'title' } } }];
    const [row] = await db
      .collection('films')
      .aggregate([{ $match: { _id: 1 } as Document }, { $lookup: { from: 'films', pipeline, as: 'o' } }])
      .toArray();
    expect(row?.['o']).toMatchObject([{ _id: 4 }]);
  });

  it.each([
    ['behind another stage', [{ $match: {} }, { $search: { text: { query: 'a', path: 'b' } } }], 40602],
    ['inside a facet', [{ $facet: { a: [{ $search: {} }] } }], 40600],
    ['without a path', [{ $search: { text: { query: 'a' } } }], 8],
    ['without a query', [{ $search: { text: { query: '', path: 'b' } } }], 8],
    ['with an unknown member', [{ $search: { text: { query: 'a', path: 'b', x: 1 } } }], 8],
    ['with two operators', [{ $search: { text: { query: 'a', path: 'b' }, exists: { path: 'b' } } }], 8],
    ['with an operator nobody knows', [{ $search: { guess: {} } }], 8],
    ['with an operator it lacks', [{ $search: { regex: { query: 'a', path: 'b' } } }], 238],
    ['with an order it lacks', [{ $search: { exists: { path: 'b' }, sort: { a: 1 } } }], 238],
    ['with a flag that is none', [{ $search: { exists: { path: 'b' }, scoreDetails: 1 } }], 8],
    ['with a count that is none', [{ $search: { exists: { path: 'b' }, count: 1 } }], 8],
    ['with a count of an unknown kind', [{ $search: { exists: { path: 'b' }, count: { type: 'all' } } }], 8],
    ['with half a threshold', [{ $search: { exists: { path: 'b' }, count: { threshold: 0.5 } } }], 8],
    [
      'with no expansions',
      [{ $search: { text: { query: 'a', path: 'b', fuzzy: { maxExpansions: 0 } } } }],
      8,
    ],
    [
      'with an unknown member of fuzzy',
      [{ $search: { text: { query: 'a', path: 'b', fuzzy: { x: 1 } } } }],
      8,
    ],
    ['with an analyzer', [{ $search: { text: { query: 'a', path: { value: 'b', multi: 'c' } } } }], 238],
    ['with a list of paths to complete', [{ $search: { autocomplete: { query: 'a', path: ['b'] } } }], 8],
    ['with a wildcard that exists', [{ $search: { exists: { path: { wildcard: '*' } } } }], 8],
    ['with a list that is equal', [{ $search: { equals: { path: 'b', value: [1] } } }], 8],
    ['with an expression that is equal', [{ $search: { equals: { path: 'b', value: /a/ } } }], 8],
    ['with too many texts', [{ $search: { text: { query: Array(1025).fill('a'), path: 'b' } } }], 8],
    ['with three edits', [{ $search: { text: { query: 'a', path: 'b', fuzzy: { maxEdits: 3 } } } }], 8],
    ['with an empty compound', [{ $search: { compound: {} } }], 8],
    ['for details not asked for', [{ $project: { s: { $meta: 'scoreDetails' } } }], 40218],
  ] as [string, Document[], number][])('is refused %s', async (_title, pipeline, code) => {
    expect(await readError(pipeline)).toBe(code);
  });
});

describe('$searchMeta', () => {
  it('has nothing to say of a collection that is not there', async () => {
    const search = { exists: { path: 'a' } };
    expect(
      await db
        .collection('nowhere')
        .aggregate([{ $searchMeta: search }])
        .toArray(),
    ).toEqual([]);
  });

  it('counts facets over what was found', async () => {
    const facets = {
      genre: { type: 'string', path: 'genres' },
      age: { type: 'number', path: 'year', boundaries: [1980, 2000, 2005], default: 'later' },
    };
    const all = await films
      .aggregate([{ $searchMeta: { facet: { facets }, count: { type: 'total' } } }])
      .toArray();
    expect(all).toEqual([
      {
        count: { total: 4 },
        facet: {
          genre: {
            buckets: [
              { _id: 'comedy', count: 2 },
              { _id: 'drama', count: 2 },
            ],
          },
          age: {
            buckets: [
              { _id: 1980, count: 1 },
              { _id: 2000, count: 1 },
              { _id: 'later', count: 2 },
            ],
          },
        },
      },
    ]);
    const operator = { text: { query: 'train', path: 'title' } };
    const some = await films.aggregate([{ $searchMeta: { facet: { operator, facets } } }]).toArray();
    expect(some).toMatchObject([
      {
        count: { lowerBound: 2 },
        facet: {
          genre: {
            buckets: [
              { _id: 'drama', count: 2 },
              { _id: 'comedy', count: 1 },
            ],
          },
        },
      },
    ]);
  });

  it.each([
    ['without facets', {}],
    ['of unknown type', { a: { type: 'x', path: 'b' } }],
    ['with one boundary', { a: { type: 'number', path: 'b', boundaries: [1] } }],
    ['with boundaries out of order', { a: { type: 'number', path: 'b', boundaries: [2, 1] } }],
    ['without a path', { a: { type: 'string' } }],
    ['of texts with boundaries', { a: { type: 'string', path: 'b', boundaries: [1, 2] } }],
    [
      'with another default than a text',
      { a: { type: 'number', path: 'b', boundaries: [1, 2], default: 1 } },
    ],
  ])('refuses facets %s', async (_title, facets) => {
    expect(await readError([{ $searchMeta: { facet: { facets } } }])).toBe(8);
  });

  it('has facets or an operator, and not both', async () => {
    const facet = { facets: { a: { type: 'string', path: 'b' } } };
    expect(await readError([{ $searchMeta: { facet, exists: { path: 'b' } } }])).toBe(8);
  });
});

const nearest = (more: Document = {}) => ({
  $vectorSearch: { index: 'v', path: 'v', queryVector: [1, 0], numCandidates: 10, limit: 3, ...more },
});

describe('$vectorSearch', () => {
  it('orders by cosine, with the score that Atlas gives', async () => {
    const rows = await films
      .aggregate([nearest(), { $project: { s: { $meta: 'vectorSearchScore' } } }])
      .toArray();
    expect(rows.map(({ _id }) => _id)).toEqual([1, 2, 3]);
    expect(rows.map(({ s }) => Number(s.toFixed(3)))).toEqual([1, 0.9, 0.5]);
  });

  it('is sorted by its score beside other keys, the highest first', async () => {
    const sort = { $sort: { even: 1, s: { $meta: 'vectorSearchScore' } } };
    const stored = db.collection<Document & { _id: number }>('sorted');
    await stored.insertMany([1, 2, 3, 4].map((_id) => ({ _id, even: _id % 2 === 0, v: [_id, 3 - _id] })));
    const rows = await stored.aggregate([nearest({ limit: 4 }), sort, { $limit: 4 }]).toArray();
    expect(rows.map(({ _id }) => _id)).toEqual([3, 1, 4, 2]);
    const other = [nearest(), { $sort: { s: { $meta: 'searchScore' } } }, { $limit: 1 }];
    expect(await films.aggregate(other).toArray()).toHaveLength(1);
  });

  it('filters before it counts to the limit', async () => {
    const rows = await films.aggregate([nearest({ limit: 1, filter: { year: { $gt: 2005 } } })]).toArray();
    expect(rows.map(({ _id }) => _id)).toEqual([3]);
  });

  it('compares vectors of one kind by their numbers, and no other binary values', async () => {
    const stored = db.collection<Document & { _id: number }>('binary');
    await stored.insertMany([
      { _id: 1, v: Binary.fromFloat32Array(Float32Array.of(3, 0)) },
      { _id: 2, v: Binary.fromInt8Array(Int8Array.of(-2, 0)) },
      { _id: 3, v: Binary.fromBits([0, 1, 0, 0, 0, 0, 0, 0]) },
      { _id: 4, v: new Binary(Buffer.from([0x7f, 0, 1]), Binary.SUBTYPE_VECTOR) },
      { _id: 5, v: new Binary(Buffer.from([0x27, 0])) },
      { _id: 6, v: [1, 1] },
    ]);
    for (const [queryVector, found] of [
      [
        [1, 0],
        [1, 6],
      ],
      [Binary.fromFloat32Array(Float32Array.of(1, 0)), [1, 6]],
      [Binary.fromInt8Array(Int8Array.of(1, 0)), [2]],
    ]) {
      const rows = await stored.aggregate([nearest({ queryVector, limit: 10 })]).toArray();
      expect(rows.map(({ _id }) => _id)).toEqual(found);
    }
    const queryVector = Binary.fromBits([1, 0, 0, 0, 0, 0, 0, 0]);
    expect(await readError([nearest({ queryVector })])).toBe(8);
    const fields = [{ type: 'vector', path: 'v', numDimensions: 8, similarity: 'euclidean' }];
    await stored.createSearchIndex({ name: 'v', type: 'vectorSearch', definition: { fields } });
    const rows = await stored.aggregate([nearest({ queryVector, limit: 10 })]).toArray();
    expect(rows.map(({ _id }) => _id)).toEqual([3]);
  });

  it('takes null for an option that is not given, and does not look at unknown ones', async () => {
    const found = async (more: Document) => (await films.aggregate([nearest(more)]).toArray()).length;
    expect(await found({ parentFilter: null, quantization: 'x' })).toBe(3);
    expect(await found({ numCandidates: null, exact: true })).toBe(3);
    expect(await readError([nearest({ parentFilter: { year: 1 } })])).toBe(238);
  });

  it('takes its similarity from the index that was declared', async () => {
    const vectors = db.collection<Document & { _id: number }>('vectors');
    await vectors.insertMany([
      { _id: 1, v: [4, 0] },
      { _id: 2, v: [1, 1] },
      { _id: 3, v: [1, 2, 3] },
      { _id: 4 },
    ]);
    const index = (similarity: string) => ({
      name: similarity,
      type: 'vectorSearch',
      definition: { fields: [{ type: 'vector', path: 'v', numDimensions: 2, similarity }] },
    });
    await vectors.createSearchIndexes([index('euclidean'), index('dotProduct'), index('cosine')]);
    const by = async (name: string) =>
      (
        await vectors
          .aggregate([nearest({ index: name }), { $project: { s: { $meta: 'vectorSearchScore' } } }])
          .toArray()
      ).map(({ _id, s }) => [_id, Number(Number(s).toFixed(3))]);
    expect(await by('euclidean')).toEqual([
      [2, 0.5],
      [1, 0.1],
    ]);
    expect(await by('dotProduct')).toEqual([
      [1, 2.5],
      [2, 1],
    ]);
    expect(await by('cosine')).toEqual([
      [1, 1],
      [2, 0.854],
    ]);
    expect((await vectors.listSearchIndexes().toArray()).map(({ name }) => name)).toEqual([
      'euclidean',
      'dotProduct',
      'cosine',
    ]);
    const { cursor } = await db.command({ listSearchIndexes: vectors.collectionName, name: 'cosine' });
    expect(cursor.firstBatch).toMatchObject([{ name: 'cosine', status: 'READY' }]);
    await expect(vectors.createSearchIndex(index('cosine'))).rejects.toMatchObject({ code: 68 });
    await vectors.dropSearchIndex('cosine');
    await expect(vectors.dropSearchIndex('cosine')).rejects.toMatchObject({ code: 27 });
  });

  it('searches a declared index by what it holds, and by nothing else', async () => {
    const stored = db.collection<Document & { _id: number }>('indexed');
    await stored.insertMany([
      { _id: 1, v: [1, 0], w: [1, 0], kind: null },
      { _id: 2, v: [0, 1], w: [1, 0], kind: 'a' },
      { _id: 3, v: [1, 1], w: [1, 0] },
    ]);
    const vector = { type: 'vector', path: 'v', numDimensions: 2, similarity: 'cosine' };
    const declare = (name: string, definition: Document): Promise<string> =>
      stored.createSearchIndex({ name, type: 'vectorSearch', definition });
    await declare('v', { fields: [vector, { type: 'filter', path: 'kind' }] });
    const find = async (more: Document): Promise<number[] | number> =>
      stored
        .aggregate([nearest(more)])
        .toArray()
        .then((rows) => rows.map(({ _id }) => _id).toSorted((a, b) => a - b))
        .catch(({ code }) => code);
    expect(await find({ filter: { kind: { $ne: 'a' } } })).toEqual([1, 3]);
    expect(await find({ filter: { kind: null } })).toEqual([1]);
    expect(await find({ filter: { $or: [{ kind: { $in: ['a', 'b'] } }, { kind: null }] } })).toEqual([1, 2]);
    expect(await find({ path: 'w' })).toBe(8);
    expect(await find({ queryVector: [0, 0] })).toBe(8);
    expect(await find({ filter: { _id: 1 } })).toBe(8);
    await declare('nested', { nestedRoot: 'v', fields: [vector] });
    expect(await find({ index: 'nested' })).toBe(238);
    await expect(declare('whole', { storedSource: true, fields: [vector] })).rejects.toMatchObject({
      code: 8,
    });
  });

  it.each([
    ['a pattern', { year: { $regex: 'x' } }],
    ['an expression', { $expr: true }],
    ['an object', { year: { x: 1 } }],
    ['a decimal', { year: { $gt: Decimal128.fromString('1') } }],
    ['bytes', { year: new Binary(Buffer.from([1])) }],
    ['one of nothing', { year: { $in: [] } }],
    ['one of several types', { year: { $in: [1, 'x'] } }],
    ['one of null', { year: { $in: [null] } }],
    ['a presence that is no truth', { year: { $exists: 1 } }],
    ['one of these in what must not be', { year: { $not: { $mod: [2, 0] } } }],
  ])('has no filter by %s', async (_title, filter) => {
    expect(await readError([nearest({ filter })])).toBe(8);
  });

  it('names the node it prefers by a key, and is checked when it is explained as well', async () => {
    for (const operator of [nearest(), { $search: { exists: { path: '_id' } } }]) {
      const [name = ''] = Object.keys(operator);
      const prefer = (searchNodePreference: unknown): Document[] => [
        { [name]: { ...(operator as Document)[name], searchNodePreference } },
      ];
      expect(await films.aggregate(prefer({ key: 'x' })).toArray()).not.toEqual([]);
      for (const other of ['x', {}, { key: 1 }]) expect(await readError(prefer(other))).toBe(8);
    }
    const traced = [nearest({ explainOptions: { traceDocumentIds: [1] } })];
    expect(await readError(traced)).toBe(238);
    await expect(films.aggregate(traced).explain('queryPlanner')).rejects.toMatchObject({ code: 238 });
    expect(await films.aggregate([nearest()]).explain('queryPlanner')).toMatchObject({ ok: 1 });
    expect(await readError([{ $lookup: { from: 'films', pipeline: [nearest()], as: 'o' } }])).toBe(51047);
  });

  it.each([
    ['without candidates', { numCandidates: undefined }],
    ['with fewer candidates than rows', { numCandidates: 2 }],
    ['with more than 10,000 candidates', { numCandidates: 10_001 }],
    ['with candidates of an exact search', { exact: true }],
    ['without a limit', { limit: 0 }],
    ['with a decimal limit', { limit: Decimal128.fromString('3') }],
    ['without an index', { index: '' }],
    ['of another dimension', { queryVector: [1, 0, 0] }],
    ['with a vector of words', { queryVector: ['a'] }],
    ['with a number beyond those of vectors', { queryVector: [1e39, 0] }],
    ['with an empty vector', { queryVector: [] }],
  ])('is refused %s', async (_title, more) => {
    expect(await readError([nearest(more)])).toBe(8);
  });

  it('finds the nearest exactly, whatever is stored', async () => {
    const stored = db.collection<Document & { _id: number }>('any');
    const vector = fc
      .array(fc.integer({ min: -9, max: 9 }), { minLength: 3, maxLength: 3 })
      .filter((v) => v.some((n) => n !== 0));
    await fc.assert(
      fc.asyncProperty(fc.array(vector, { minLength: 1, maxLength: 20 }), vector, async (vectors, query) => {
        await stored.deleteMany({});
        await stored.insertMany(vectors.map((v, _id) => ({ _id, v })));
        const rows = await stored
          .aggregate([
            { $vectorSearch: { index: 'x', path: 'v', queryVector: query, exact: true, limit: 50 } },
            { $project: { s: { $meta: 'vectorSearchScore' } } },
          ])
          .toArray();
        const length = (v: number[]) => Math.hypot(...v);
        const cosine = (v: number[]) =>
          v.reduce((sum, n, i) => sum + n * (query[i] as number), 0) / (length(v) * length(query));
        expect(rows).toHaveLength(vectors.length);
        for (const { _id, s } of rows) expect(s).toBeCloseTo((1 + cosine(vectors[_id] as number[])) / 2, 9);
        const scores = rows.map(({ s }) => Number(s));
        expect(scores).toEqual([...scores].sort((a, b) => b - a));
      }),
      { numRuns: 30 },
    );
  });
});

describe('a server without search', () => {
  it.each([
    ['$search', [{ $search: { exists: { path: '_id' } } }]],
    ['$searchMeta', [{ $searchMeta: { exists: { path: '_id' } } }]],
    ['$vectorSearch', [nearest()]],
    ['$listSearchIndexes', [{ $listSearchIndexes: {} }]],
  ])('answers %s with the code of MongoDB', async (_title, pipeline) => {
    const plain = await EmbeddedMongo.start({ search: false });
    const other = await MongoClient.connect(plain.uri);
    try {
      await expect(other.db('x').collection('c').aggregate(pipeline).toArray()).rejects.toMatchObject({
        code: 31082,
      });
    } finally {
      await other.close();
      await plain.close();
    }
  });
});

describe('words', () => {
  it('are split as they are written, in lower case', () => {
    expect(listTerms("Don't stop: Año 2024_x")).toEqual(['don', 't', 'stop', 'año', '2024_x']);
    expect(listTerms('An\u0303o a\u200db c\u200bd')).toEqual(['an\u0303o', 'a\u200db', 'c', 'd']);
  });

  it('are as far apart as the edits between them, swaps counted once', () => {
    expect([
      editDistance('trian', 'train', 2),
      editDistance('abc', 'abcd', 2),
      editDistance('abc', 'xyz', 2),
    ]).toEqual([1, 1, 3]);
    fc.assert(
      fc.property(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), (a, b) => {
        expect(editDistance(a, b, 9)).toBe(editDistance(b, a, 9));
        expect(editDistance(a, a, 2)).toBe(0);
      }),
    );
  });
});
