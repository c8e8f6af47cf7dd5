import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, type Service, startService } from '../../support/service.js';

const author = (objectId: string) => ({ __type: 'Pointer', className: 'Author', objectId });
const PLACEHOLDER = { className: 'Author', __redacted: true };
const WITHHELD_ID = /zekret/;

const fields = {
  title: { type: 'String' },
  author: { type: 'Pointer', targetClass: 'Author' },
  next: { type: 'String' },
  editors: { type: 'Array' },
};
const rows = [
  { objectId: 'r1', title: 'one', author: author('zekret1'), next: 'r2', editors: [author('zekret1')] },
  { objectId: 'r2', title: 'two', author: author('zekret2') },
  { objectId: 'r3', title: 'three', author: null },
  { objectId: 'r4', title: 'four' },
];
const SEED = {
  schemas: [
    { className: 'Author', fields: { name: { type: 'String' } } },
    { className: 'Book', fields },
    { className: 'Listed', fields },
    { className: 'Shelf', fields: { title: { type: 'String' } } },
  ],
  objects: {
    Author: [{ objectId: 'zekret1', name: 'a' }],
    Book: rows,
    Listed: rows,
    Shelf: [{ objectId: 's1', title: 'r1' }],
  },
};
const CONFIG = {
  agents: { analyst: { permissions: 'readonly', rateLimit: 1_000_000 } },
  auth: [{ anonymous: true, agent: 'analyst' }],
  policy: {
    unlistedClasses: 'allow',
    classes: {
      Author: { hidden: true },
      Book: { properties: { editors: { targetClass: 'Author' } } },
      Listed: {
        fields: ['title', 'author', 'next', 'editors'],
        properties: { editors: { targetClass: 'Author' } },
      },
    },
  },
};

/** The route of every row: the database itself, or a Parse Server alone. */
const ROUTES = ['MongoDB', 'Parse Server'] as const;
let parse: ParseUnderTest;
let services: Record<(typeof ROUTES)[number], Service>;
let service: Service;
beforeAll(async () => {
  parse = await ParseUnderTest.start();
  await parse.fill(SEED);
  services = {
    MongoDB: await startService({ seed: SEED, config: CONFIG }),
    'Parse Server': await startService({ config: { ...CONFIG, parse: parse.config } }),
  };
}, 120_000);
afterAll(async () => {
  await Promise.all(Object.values(services ?? {}).map((started) => started.stop()));
  await parse?.stop();
});

type Row = Record<string, unknown>;

async function results(tool: string, args: object): Promise<Row[]> {
  const answer = await callTool(service, tool, args);
  expect([args, answer.isError, answer.text]).toEqual([args, false, answer.text]);
  expect(answer.wire).not.toMatch(WITHHELD_ID);
  return answer.data['results'] as Row[];
}
const SORTED = { $sort: { title: 1 } };
const GROUPS = [
  [null, 2],
  [PLACEHOLDER, 2],
];
/** By name of the row: four, one, three, two. */
const SEEN = [undefined, PLACEHOLDER, undefined, PLACEHOLDER];
const seenIn = (found: Row[]) => found.map((row) => row['author']);
const pairs = { $project: { pairs: { $objectToArray: '$$ROOT' } } };

/** Stages that compute `leak` of a pointer, named POINTER, in any form of an expression. */
const pointerStages = fc
  .letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.constantFrom('$POINTER', '$$ROOT.POINTER', '$$CURRENT.POINTER', { $getField: 'POINTER' }),
      fc.constantFrom('$POINTER.__redacted', '$title', null, 'plain'),
      fc.record({ $type: tie('value') }),
      fc.record({ $ifNull: fc.tuple(tie('value'), tie('value')) }),
      fc.record({ $eq: fc.tuple(tie('value'), tie('value')) }),
      fc.record({ $cond: fc.tuple(tie('value'), tie('value'), tie('value')) }),
      fc.record({ $let: fc.record({ vars: fc.record({ v: tie('value') }), in: fc.constant('$$v') }) }),
      fc.record({ $map: fc.record({ input: fc.tuple(tie('value')), in: fc.constant('$$this') }) }),
      fc.record({ a: tie('value'), b: tie('value') }),
    ),
  }))
  .value.chain((leak) =>
    fc.constantFrom<object[]>(
      [{ $project: { leak } }],
      [{ $set: { leak } }, { $project: { title: 1, leak: 1 } }],
      [{ $replaceWith: { leak } }],
      [{ $group: { _id: null, leak: { $push: leak } } }],
      [{ $facet: { all: [{ $project: { leak } }] } }],
      [{ $unwind: { path: '$editors', preserveNullAndEmptyArrays: true } }, { $project: { leak } }],
      [{ $sort: { POINTER: 1, title: 1 } }, { $project: { leak } }],
      [{ $set: { leak } }, { $match: { leak: { $ne: null } } }, { $project: { title: 1, leak: 1 } }],
    ),
  );

const CASES = ROUTES.flatMap((route) => ['Book', 'Listed'].map((className) => [className, route] as const));

describe.each(CASES)('pointers of %s into a hidden class, in a pipeline by %s', (className, route) => {
  beforeAll(() => {
    service = services[route];
  });
  const aggregate = (...pipeline: object[]) => results('aggregate', { class_name: className, pipeline });
  const shelf = (...pipeline: object[]) => results('aggregate', { class_name: 'Shelf', pipeline });

  it('are seen as query_class shows them', async () => {
    expect(seenIn(await results('query_class', { class_name: className, order: 'title' }))).toEqual(SEEN);
  });

  it('are not there at all in an array whose targetClass is the hidden one', async () => {
    for (const seen of [
      { $project: { title: 1, editors: 1 } },
      { $project: { title: 1, editors: '$editors' } },
      { $addFields: { copy: '$$ROOT.editors' } },
      { $replaceWith: { title: '$title', editors: { $getField: 'editors' } } },
    ])
      for (const row of await aggregate(SORTED, seen)) {
        expect(row).not.toHaveProperty('editors');
        expect(row).not.toHaveProperty('copy');
      }
    for (const stage of [
      { $match: { editors: author('zekret1') } },
      { $match: { 'editors.objectId': 'zekret1' } },
    ])
      expect(
        await callTool(service, 'aggregate', { class_name: className, pipeline: [stage] }),
      ).toMatchObject({
        isError: true,
        code: 'access_denied',
      });
  });

  it.each<[string, object[]]>([
    ['in whole rows', [SORTED]],
    ['by name', [SORTED, { $project: { author: 1 } }]],
    ['behind an exclusion', [SORTED, { $project: { next: 0 } }]],
    ['computed', [SORTED, { $project: { author: '$author' } }]],
    ['of a variable', [SORTED, { $project: { author: '$$ROOT.author' } }]],
    ['of $getField', [SORTED, { $project: { author: { $getField: 'author' } } }]],
    ['of replaced documents', [SORTED, { $replaceRoot: { newRoot: '$$ROOT' } }]],
    ['of merged documents', [SORTED, { $replaceWith: { $mergeObjects: ['$$ROOT', { x: 1 }] } }]],
    ['of new documents', [SORTED, { $replaceWith: { author: '$author' } }]],
    [
      'of pushed documents',
      [
        SORTED,
        { $group: { _id: null, all: { $push: '$$ROOT' } } },
        { $unwind: '$all' },
        { $replaceWith: '$all' },
      ],
    ],
    ['of a $facet', [{ $facet: { all: [SORTED] } }, { $unwind: '$all' }, { $replaceWith: '$all' }]],
    ['of pairs', [SORTED, { $replaceWith: { $arrayToObject: { $objectToArray: '$$ROOT' } } }]],
  ])('%s', async (_, pipeline) => {
    expect(seenIn(await aggregate(...pipeline))).toEqual(SEEN);
  });

  it.each<[string, object[]]>([
    ['$group', [{ $group: { _id: '$author', count: { $sum: 1 } } }, { $sort: { _id: 1 } }]],
    ['$sortByCount', [{ $sortByCount: '$author' }, { $sort: { _id: 1 } }]],
  ])('are one value in %s', async (_, pipeline) => {
    const groups = await aggregate(...pipeline);
    expect(groups.map((group) => [group['_id'] ?? null, group['count']])).toEqual(GROUPS);
  });

  it('are one group and one value, distinct from no value', async () => {
    const named = { class_name: className, field: 'author' };
    const answered = async (tool: string, args: object) => {
      const answer = await callTool(service, tool, { ...named, ...args });
      expect([answer.isError, answer.wire.match(WITHHELD_ID)]).toEqual([false, null]);
      return answer;
    };
    const groups = await answered('group_by', { sort: 'key_asc' });
    expect(groups.data).toMatchObject({
      groups: [
        { key: 'null', value: 2 },
        { key: PLACEHOLDER, value: 2 },
      ],
    });
    expect(groups.data).not.toHaveProperty('pointer_class');
    const values = await answered('distinct', { sort: 'asc' });
    expect(values.data).toMatchObject({ values: [null, PLACEHOLDER], count: 2 });
    const grouping = { $group: { _id: '$author', value: { $sum: 1 } } };
    for (const format of ['csv', 'markdown', 'table']) {
      const pipeline = [grouping, { $sort: { _id: 1 } }];
      const { data } = await answered('export_data', { field: undefined, pipeline, format });
      const lines = String(data['output']).split('\n');
      expect(lines.filter((line) => line.includes('__redacted'))).toHaveLength(1);
    }
  });

  it('are asked for presence before and behind other stages', async () => {
    const there = { $match: { author: { $exists: true, $ne: null } } };
    const counted = { $count: 'n' };
    expect(await aggregate(there, counted)).toEqual([{ n: 2 }]);
    expect(await aggregate(SORTED, there, counted)).toEqual([{ n: 2 }]);
  });

  it.each<[string, object[]]>([
    ['$lookup', [{ $lookup: { from: className, pipeline: [SORTED], as: 'all' } }]],
    [
      '$graphLookup',
      [
        {
          $graphLookup: {
            from: className,
            startWith: ['r1', 'r2', 'r3', 'r4'],
            connectFromField: 'next',
            connectToField: 'objectId',
            as: 'all',
          },
        },
      ],
    ],
  ])('are seen in rows of %s, and nowhere their ids', async (_, join) => {
    const [whole] = await shelf(...join);
    const joined = ((whole?.['all'] ?? []) as Row[]).toSorted((a, b) =>
      String(a['title']).localeCompare(String(b['title'])),
    );
    expect(joined.map((row) => row['title'])).toEqual(['four', 'one', 'three', 'two']);
    expect(seenIn(joined)).toEqual(SEEN);
    const unwound = [...join, { $unwind: '$all' }, { $sort: { 'all.title': 1 } }];
    expect(seenIn(await shelf(...unwound, { $project: { author: '$all.author' } }))).toEqual(SEEN);
    expect(seenIn(await shelf(...unwound, { $replaceWith: '$all' }, { $project: { author: 1 } }))).toEqual(
      SEEN,
    );
    const members = { $project: { pairs: { $map: { input: '$all', in: { $objectToArray: '$$this' } } } } };
    expect(JSON.stringify(await shelf(...join, members))).not.toContain('_p_author');
    const created = await shelf(...unwound, { $match: { 'all.createdAt': { $gt: '2000-01-01T00:00:00Z' } } });
    expect(created).toHaveLength(4);
  });

  it('are seen in rows of $unionWith', async () => {
    expect(seenIn(await shelf({ $match: { title: 'none' } }, { $unionWith: className }, SORTED))).toEqual(
      SEEN,
    );
    const twice = await aggregate({ $match: { title: 'none' } }, { $unionWith: className }, SORTED);
    expect(seenIn(twice)).toEqual(SEEN);
    const other = className === 'Book' ? 'Listed' : 'Book';
    const mixed = await aggregate({ $match: { title: 'none' } }, { $unionWith: other }, SORTED, {
      $project: { author: 1 },
    });
    expect(seenIn(mixed)).toEqual(SEEN);
  });

  it('are seen in their storage form too, wherever a pipeline writes it', async () => {
    const graph = {
      $graphLookup: {
        from: className,
        startWith: ['r1', 'r2', 'r3', 'r4'],
        connectFromField: 'next',
        connectToField: 'objectId',
        as: 'all',
      },
    };
    const joins = [[{ $lookup: { from: className, pipeline: [], as: 'all' } }], [graph]];
    const byTitle = (list: Row[]) => list.toSorted((a, b) => String(a['t']).localeCompare(String(b['t'])));
    for (const join of joins)
      for (const leak of ['$all._p_author', { $getField: { field: '_p_author', input: '$all' } }]) {
        const found = await shelf(...join, { $unwind: '$all' }, { $project: { t: '$all.title', leak } });
        // A pointer that is null stays null in the rows of a graph.
        expect([leak, byTitle(found).map((row) => row['leak'] ?? undefined)]).toEqual([leak, SEEN]);
      }
    for (const join of joins) {
      const leaks = { $map: { input: '$all', as: 'row', in: { t: '$$row.title', leak: '$$row._p_author' } } };
      const [row] = await shelf(...join, { $project: { leaks } });
      expect(byTitle(row?.['leaks'] as Row[]).map(({ leak }) => leak ?? undefined)).toEqual(SEEN);
    }
    if (className === 'Listed') return;
    const leaks = async (...stages: object[]) =>
      (await aggregate(SORTED, ...stages)).map((row) => row['leak']);
    for (const leak of [
      '$_p_author',
      '$$ROOT._p_author',
      '$$CURRENT._p_author',
      { $getField: '_p_author' },
    ]) {
      expect([leak, await leaks({ $project: { leak } })]).toEqual([leak, SEEN]);
      expect([leak, await leaks({ $addFields: { leak } })]).toEqual([leak, SEEN]);
      expect([leak, await leaks({ $replaceWith: { leak } })]).toEqual([leak, SEEN]);
    }
    const counted = async (...stages: object[]) =>
      new Map((await aggregate(...stages)).map((row) => [JSON.stringify(row['_id'] ?? null), row['n']]));
    const groups = new Map([
      ['null', 2],
      [JSON.stringify(PLACEHOLDER), 2],
    ]);
    for (const stages of [
      [{ $group: { _id: '$_p_author', n: { $sum: 1 } } }],
      [{ $sortByCount: '$_p_author' }, { $project: { n: '$count' } }],
    ])
      expect(await counted(...stages)).toEqual(groups);
    expect(await aggregate({ $limit: 9 }, { $match: { _p_author: { $exists: true } } }, SORTED)).toHaveLength(
      2,
    );
    expect(await aggregate({ $sort: { _p_author: -1, title: 1 } }, { $project: { title: 1 } })).toMatchObject(
      [{ title: 'one' }, { title: 'two' }, { title: 'four' }, { title: 'three' }],
    );
    for (const field of ['author', '_p_author'])
      for (const [tool, args] of [
        ['group_by', { operation: 'count' }],
        ['distinct', {}],
      ] as const)
        expect((await callTool(service, tool, { class_name: className, field, ...args })).wire).not.toMatch(
          WITHHELD_ID,
        );
  });

  it('are the same in any expression, by their name and in their storage form', async () => {
    if (className === 'Listed') return;
    const written = (name: string, pipeline: object[]) =>
      JSON.parse(JSON.stringify(pipeline).replaceAll('POINTER', name)) as object[];
    /** Rows, or why the types of an expression do not fit. */
    const ask = async (name: string, stages: object[]) => {
      const pipeline = [SORTED, ...written(name, stages)];
      const answer = await callTool(service, 'aggregate', { class_name: className, pipeline });
      expect(answer.wire).not.toMatch(WITHHELD_ID);
      return answer.isError ? answer.text.replaceAll(name, 'author') : answer.data['results'];
    };
    await fc.assert(
      fc.asyncProperty(pointerStages, async (stages) => {
        const [byName, stored] = await Promise.all([ask('author', stages), ask('_p_author', stages)]);
        expect(stored).toEqual(byName);
      }),
      { numRuns: 60 },
    );
  });

  it('are nowhere under their storage name', async () => {
    for (const pipeline of [[pairs], [{ $group: { _id: null, all: { $push: '$$ROOT' } } }, pairs]]) {
      const shown = JSON.stringify(await aggregate(...pipeline));
      expect(shown).toContain('__redacted');
      expect(shown).not.toContain('_p_author');
    }
  });

  it('lend their name to a depth, and stay out of sight', async () => {
    const join = {
      $graphLookup: {
        from: className,
        startWith: ['r1'],
        connectFromField: 'next',
        connectToField: 'objectId',
        depthField: 'author',
        as: 'all',
      },
    };
    const members = { $project: { pairs: { $map: { input: '$all', in: { $objectToArray: '$$this' } } } } };
    expect(JSON.stringify(await shelf(join, members))).not.toMatch(/_p_author|Author/);
    const [row] = await shelf(join);
    expect(new Set(seenIn((row?.['all'] ?? []) as Row[]))).toEqual(new Set([0, 1]));
  });

  it.each<[string, object[]]>([
    ['$match', [{ $match: { author: author('zekret1') } }]],
    ['a later $match', [SORTED, { $match: { author: { $gt: 'Author$a' } } }]],
    [
      'a join from them',
      [{ $lookup: { from: 'Shelf', localField: 'author', foreignField: 'objectId', as: 'x' } }],
    ],
    [
      'a join to them',
      [{ $lookup: { from: className, localField: 'title', foreignField: 'author', as: 'x' } }],
    ],
    [
      'a graph',
      [
        {
          $graphLookup: {
            from: className,
            startWith: 'x',
            connectFromField: 'author',
            connectToField: 'title',
            as: 'x',
          },
        },
      ],
    ],
  ])('are not compared: %s', async (_, pipeline) => {
    const answer = await callTool(service, 'aggregate', { class_name: className, pipeline });
    expect([answer.isError, answer.code]).toEqual([true, 'access_denied']);
  });

  it('are compared in expressions as what is seen of them', async () => {
    const equal = (value: object) => aggregate(SORTED, { $project: { is: { $eq: ['$author', value] } } });
    const placeholders = await equal({ $literal: PLACEHOLDER });
    expect(placeholders.map(({ is }) => is)).toEqual([false, true, false, true]);
    const types = await aggregate(SORTED, { $project: { is: { $type: '$author' } } });
    expect(types.map(({ is }) => is)).toEqual(['missing', 'object', 'missing', 'object']);
    const filtered = [
      { $match: { $expr: { $eq: ['$author', { $literal: PLACEHOLDER }] } } },
      { $count: 'n' },
    ];
    expect(await aggregate(...filtered)).toEqual([{ n: 2 }]);
  });
});
