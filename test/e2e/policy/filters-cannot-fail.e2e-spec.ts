// oxlint-disable unicorn/no-thenable -- $cond and $switch call a field "then".
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FILTER_OPERATORS, REFUSED_IN_FILTERS } from '../../../libs/policy/src/pipeline/operators.js';
import { applied } from '../../support/operator-arguments.js';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';
import { callTool, type Service, startService, type ToolAnswer } from '../../support/service.js';

/** The order that both databases evaluate filters in. */
const SEED = process.env['EMBEDDED_MONGO_REORDER_FILTERS'] || '1';

/** The posts with a title in a row of another tenant, and with another one there. */
const seedWith = (title: string) => ({
  ...POSTS_SEED,
  objects: {
    ...POSTS_SEED.objects,
    Post: POSTS_SEED.objects.Post.filter(({ objectId }) =>
      ['p01', 'p02', 'p03', 'gone', 'foreign'].includes(objectId),
    ).map((row) => (row.objectId === 'foreign' ? { ...row, title, tags: ['tea', title] } : row)),
  },
});

let worlds: readonly [Service, Service];
beforeAll(async () => {
  const start = (title: string) =>
    startService({
      seed: seedWith(title),
      config: POSTS_CONFIG,
      env: { EMBEDDED_MONGO_REORDER_FILTERS: SEED },
    });
  worlds = await Promise.all([start('zebra'), start('plain')]);
});
afterAll(() => Promise.all(worlds.map((world) => world.stop())));

/** What a caller can observe of an answer. */
const shownOf = ({ isError, code, rpcError, text, data }: ToolAnswer) => ({
  isError,
  code,
  rpcError,
  said: isError ? text : undefined,
  results: data['results'] ?? data['rows'] ?? data['count'],
});

/** The answer of both worlds, which must be one. */
async function asked(tool: string, args: object) {
  const [one, other] = await Promise.all(
    worlds.map(async (world) => shownOf(await callTool(world, tool, args))),
  );
  expect(one).toEqual(other);
  return one;
}

/** One value where a row of the other tenant says `zebra`, another one everywhere else. */
const where = (bad: unknown, good: unknown, title = '$title') => ({
  $cond: [{ $eq: [title, 'zebra'] }, bad, good],
});
const FAILS_ON_ZEBRA = { $gt: [{ $divide: [1, where(0, 1)] }, 5] };
/** Its row makes no difference to the answer where it does not fail. */
const NOBODY = { title: 'nobody' };

type Position = (expression: unknown) => readonly object[];

const inJoin =
  (position: Position, join: object = {}): Position =>
  (expression) => [
    { $limit: 1 },
    { $lookup: { from: 'Post', ...join, pipeline: position(expression), as: 'joined' } },
  ];

/** Every place where a condition can stand. */
const POSITIONS: Readonly<Record<string, Position>> = {
  'alone at the top': ($expr) => [{ $match: { $expr } }],
  'beside another': ($expr) => [{ $match: { ...NOBODY, $expr } }],
  'in $or': ($expr) => [{ $match: { $or: [{ $expr }, NOBODY] } }],
  'in $and': ($expr) => [{ $match: { $and: [NOBODY, { $expr }] } }],
  'in $nor': ($expr) => [{ $match: { $nor: [{ $expr }, NOBODY] } }],
  'in $and of $expr': ($expr) => [{ $match: { $expr: { $and: [{ $eq: ['$title', 'nobody'] }, $expr] } } }],
  'behind a filter': ($expr) => [{ $match: { likes: { $gte: 0 } } }, { $match: { $expr } }],
  'behind $sort': ($expr) => [{ $sort: { likes: 1 } }, { $match: { $expr } }],
  'behind $addFields': ($expr) => [{ $addFields: { x: 1 } }, { $match: { $expr } }],
  'behind $project': ($expr) => [{ $project: { title: 1 } }, { $match: { $expr } }],
  'behind $unset': ($expr) => [{ $unset: 'likes' }, { $match: { $expr } }],
  'behind $unwind': ($expr) => [{ $unwind: '$tags' }, { $match: { $expr } }],
  'behind $redact': ($expr) => [{ $redact: '$$KEEP' }, { $match: { $expr } }],
  'behind $lookup': ($expr) => [
    { $lookup: { from: 'Author', localField: 'author', foreignField: 'objectId', as: 'a' } },
    { $match: { $expr } },
  ],
  'behind $unionWith': ($expr) => [{ $unionWith: { coll: 'Post' } }, { $match: { $expr } }],
  'in a union': ($expr) => [{ $unionWith: { coll: 'Post', pipeline: [{ $match: { $expr } }] } }],
  'in $facet': ($expr) => [{ $facet: { x: [{ $match: { $expr } }] } }],
  'in a join': inJoin(($expr) => [{ $match: { $expr } }]),
  'in a join by columns': inJoin(($expr) => [{ $match: { $expr } }], {
    localField: 'title',
    foreignField: 'title',
  }),
  'in a join with variables': inJoin(
    ($expr) => [{ $match: { $expr: { $and: [{ $eq: ['$title', '$$t'] }, $expr] } } }],
    { let: { t: '$title' } },
  ),
  'later in a join': inJoin(($expr) => [{ $sort: { likes: 1 } }, { $match: { $or: [{ $expr }, NOBODY] } }]),
  'in a join of a join': inJoin(inJoin(($expr) => [{ $match: { $expr } }])),
  'in a join of a $facet': ($expr) => [{ $facet: { x: [...inJoin(() => [{ $match: { $expr } }])(0)] } }],
};

describe(`a condition that can fail on a row of somebody else (seed ${SEED})`, () => {
  it.each(Object.entries(POSITIONS))('is refused %s, with what to write instead', async (_, position) => {
    const answer = await asked('aggregate', { class_name: 'Post', pipeline: position(FAILS_ON_ZEBRA) });
    expect(answer).toMatchObject({ isError: true, code: 'invalid_query' });
    expect(answer?.said).toMatch(/'\$divide' can fail .* "\$addFields"/);
  });

  it.each(['aggregate', 'export_data'])('is refused by %s', async (tool) => {
    const pipeline = [{ $match: { $or: [{ $expr: FAILS_ON_ZEBRA }, NOBODY] } }];
    const answer = await asked(tool, { class_name: 'Post', pipeline });
    expect(answer).toMatchObject({ isError: true, code: 'invalid_query' });
  });

  it.each(Object.keys(REFUSED_IN_FILTERS))('is refused with %s, whatever it is given', async (operator) => {
    const values = [0, { $literal: 'text' }, { $literal: ['list'] }, { $literal: { k: 1 } }, -1];
    for (const bad of values) {
      for (const good of [1, null, { $literal: ['a'] }]) {
        const $expr = { $eq: [applied(operator, where(bad, good)), 5] };
        const answer = await asked('aggregate', { class_name: 'Post', pipeline: [{ $match: { $expr } }] });
        expect(answer?.code ?? answer?.rpcError?.code).toBe(
          answer?.rpcError === undefined ? 'invalid_query' : -32602,
        );
      }
    }
  });

  it.each(Object.entries(FILTER_OPERATORS).filter(([, fit]) => fit !== 'anything'))(
    'is refused with %s where its operands are not %s in every row',
    async (operator) => {
      for (const bad of ['text', 0, { $literal: { k: 1 } }]) {
        const $expr = { $eq: [unfit(operator, where(bad, { $literal: ['a'] })), 5] };
        const answer = await asked('aggregate', { class_name: 'Post', pipeline: [{ $match: { $expr } }] });
        expect(answer?.code ?? answer?.rpcError?.code).toBe(
          answer?.rpcError === undefined ? 'invalid_query' : -32602,
        );
      }
    },
  );

  it('is refused with an operator that nobody knows', async () => {
    const pipeline = [{ $match: { $expr: { $frobnicate: ['$title'] } } }];
    const answer = await asked('aggregate', { class_name: 'Post', pipeline });
    expect(answer).toMatchObject({ isError: true, code: 'invalid_query' });
  });

  it.each<[string, string, object]>([
    ['a where', 'query_class', { where: { $or: [{ $expr: FAILS_ON_ZEBRA }, NOBODY] } }],
    ['a where of a count', 'count_objects', { where: { $expr: FAILS_ON_ZEBRA } }],
    [
      'a query put to another class',
      'query_class',
      { where: { author: { $inQuery: { className: 'Author', where: { $expr: FAILS_ON_ZEBRA } } } } },
    ],
    [
      'members of a list',
      'aggregate',
      { pipeline: [{ $match: { tags: { $elemMatch: { $expr: FAILS_ON_ZEBRA } } } }] },
    ],
    [
      'members of a list, negated',
      'aggregate',
      { pipeline: [{ $match: { tags: { $not: { $elemMatch: { $and: [{ $expr: FAILS_ON_ZEBRA }] } } } } }] },
    ],
    [
      'a graph search',
      'aggregate',
      {
        pipeline: [
          {
            $graphLookup: {
              from: 'Post',
              startWith: '$title',
              connectFromField: 'title',
              connectToField: 'title',
              as: 'found',
              restrictSearchWithMatch: { $or: [{ $expr: FAILS_ON_ZEBRA }, NOBODY] },
            },
          },
        ],
      },
    ],
    ['a schema', 'aggregate', { pipeline: [{ $match: { $jsonSchema: { required: ['title'] } } }] }],
    ['code', 'aggregate', { pipeline: [{ $match: { $where: 'this.title.x.y' } }] }],
    ['bits', 'aggregate', { pipeline: [{ $match: { likes: { $bitsAllSet: 1 } } }] }],
    [
      'bits of members',
      'aggregate',
      { pipeline: [{ $match: { tags: { $elemMatch: { $bitsAllSet: 1 } } } }] },
    ],
    [
      // In the first stage it is a constraint, which is sent as a circle.
      'a distance behind the first stage',
      'aggregate',
      { pipeline: [{ $sort: { title: 1 } }, { $match: { title: { $near: [0, 0] } } }] },
    ],
  ])('is refused in %s', async (_, tool, args) => {
    const answer = await asked(tool, { class_name: 'Post', ...args });
    expect(answer?.isError === true || answer?.rpcError !== undefined).toBe(true);
  });
});

/** What the refusal advises to write: the condition's value in a stage, and a filter on it. */
const computed: Position = (expression) => [
  { $addFields: { computed: expression } },
  { $match: { $or: [{ computed: true }, NOBODY] } },
];

describe(`a condition computed in a stage first (seed ${SEED})`, () => {
  it.each<[string, Position]>([
    ['at the top', computed],
    ['behind a filter', (it) => [{ $match: { likes: { $gte: 0 } } }, ...computed(it)]],
    [
      'behind and in front of filters',
      (it) => [{ $match: { likes: 1 } }, ...computed(it), { $match: { likes: 1 } }],
    ],
    [
      'behind $sort and in front of $limit',
      (it) => [{ $sort: { likes: 1 } }, ...computed(it), { $limit: 2 }],
    ],
    ['behind $limit', (it) => [{ $limit: 5 }, ...computed(it)]],
    ['with $project', (it) => [{ $project: { title: 1, computed: it } }, { $match: { computed: false } }]],
    ['with $group', (it) => [{ $group: { _id: it } }, { $match: { _id: false } }]],
    [
      'with $redact',
      (it) => [{ $redact: { $cond: [it, '$$PRUNE', '$$KEEP'] } }, { $match: { title: 'Post 1' } }],
    ],
    ['with $replaceWith', (it) => [{ $replaceWith: { computed: it } }]],
    ['with $sortByCount', (it) => [{ $sortByCount: it }, { $match: { _id: false } }]],
    ['in $facet', (it) => [{ $facet: { x: computed(it) as object[] } }]],
    ['in a join', inJoin(computed)],
    ['in a join by columns', inJoin(computed, { localField: 'title', foreignField: 'title' })],
    ['in a join of a join', inJoin(inJoin(computed))],
    ['in a union', (it) => [{ $unionWith: { coll: 'Post', pipeline: computed(it) } }]],
    ['behind a union', (it) => [{ $unionWith: { coll: 'Post' } }, ...computed(it)]],
    [
      'of joined rows that are absorbed',
      (it) => [
        { $lookup: { from: 'Post', pipeline: computed(it) as object[], as: 'joined' } },
        { $unwind: '$joined' },
        { $match: { 'joined.title': 'Post 1' } },
      ],
    ],
  ])('meets no row of somebody else %s', async (_, position) => {
    // Every call draws another order.
    for (let call = 0; call < 4; call++) {
      const answer = await asked('aggregate', { class_name: 'Post', pipeline: position(FAILS_ON_ZEBRA) });
      expect(answer).toMatchObject({ isError: false, rpcError: undefined });
    }
  });
});

/** With the operands of the operator that it cannot take. */
const unfit = (operator: string, value: unknown): Record<string, unknown> => {
  if (operator === '$in') return { $in: ['a', value] };
  if (operator === '$switch') return { $switch: { branches: [{ case: value, then: 1 }] } };
  if (operator === '$getField') return { $getField: { field: value, input: '$title' } };
  return applied(operator, value);
};

describe(`conditions that cannot fail (seed ${SEED})`, () => {
  const titles = { $project: { title: 1, objectId: 0 } };
  const kept = { $cond: [{ $isArray: '$tags' }, '$tags', []] };
  const number = { $cond: { if: { $isNumber: ['$likes'] }, then: '$likes', else: 0 } };

  it.each<[string, unknown, number]>([
    ['comparisons of columns', { $gt: ['$likes', '$title'] }, 0],
    ['a written list', { $in: ['$title', ['Post 1', 'Post 2']] }, 2],
    ['a list of columns', { $in: ['Post 1', ['$title', '$body']] }, 1],
    ['a guarded list', { $in: ['t1', kept] }, 1],
    ['the size of a guarded list', { $eq: [{ $size: kept }, 2] }, 3],
    ['sets', { $setIsSubset: [['tea'], kept] }, 3],
    ['an intersection', { $gt: [{ $size: { $setIntersection: [kept, ['t1', 't2']] } }, 0] }, 2],
    ['sums of guarded numbers', { $gte: [{ $add: [{ $multiply: [number, 2] }, 1] }, 5] }, 2],
    [
      'branches',
      { $switch: { branches: [{ case: { $eq: ['$likes', 1] }, then: true }], default: false } },
      1,
    ],
    ['types', { $eq: [{ $type: '$tags' }, 'array'] }, 3],
    ['the greatest', { $eq: [{ $max: ['$likes', 2] }, 2] }, 2],
    ['defaults', { $eq: [{ $ifNull: ['$likes', 0] }, 3] }, 1],
  ])('are answered: %s', async (_, $expr, rows) => {
    const pipeline = [{ $match: { archived: false, $expr } }, titles];
    const answer = await asked('aggregate', { class_name: 'Post', pipeline });
    expect(answer).toMatchObject({ isError: false });
    expect(answer?.results).toHaveLength(rows);
  });
});
