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
