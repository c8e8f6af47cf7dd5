import { loadSeed, type MongoConnection, parseSeed } from '#data-mongo';
import type { Question } from '../e2e/advisories/questions.js';

type Json = Record<string, unknown>;

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });

/** Every form in which a row may hold an object of another class. */
const FORMS: readonly ((objectId: string) => unknown)[] = [
  (objectId) => pointer('Secret', objectId),
  (objectId) => `Secret$${objectId}`,
  (objectId) => ({ __type: 'Object', className: 'Secret', objectId, days: Number(objectId.slice(1)) }),
  (objectId) => ({ objectId, className: 'Secret', title: `of ${objectId}` }),
];
/** Of a system class, which may be named without its underscore. */
const USERS: readonly ((objectId: string) => unknown)[] = [
  (objectId) => pointer('User', objectId),
  (objectId) => `User$${objectId}`,
];

const IDS = ['s0', 's1', 's2', 's3'];
export const WITHHELD_ID = /\bs[0-3]\b/;

/** Places of withheld objects, by number: two worlds have other ids, other forms and other equal ones in them. */
function slots(world: 0 | 1) {
  const chosen = (at: number, forms: typeof FORMS) =>
    forms[(at + world) % forms.length]?.(IDS[(world === 0 ? at : 3 - 2 * at + 8) % IDS.length] as string);
  return { secret: (at: number) => chosen(at, FORMS), user: (at: number) => chosen(at, USERS) };
}

/** Rows whose Array and Object columns hold withheld objects at several depths, beside plain ones. */
function desks(world: 0 | 1): Json[] {
  const { secret, user } = slots(world);
  return [
    { blob: { inner: secret(0), size: 1 }, list: [secret(0)] },
    { blob: { inner: secret(1), size: 2 }, list: [secret(1), 'plain'] },
    { blob: secret(2), list: ['plain', 7] },
    { blob: { inner: { deep: secret(3) }, size: 4 }, list: [[secret(3)], { of: secret(2) }] },
    { blob: { inner: 'plain', size: 5 }, list: [pointer('Desk', 'd0'), user(0)] },
    { blob: { inner: user(1), size: 6, more: [{ at: [secret(1)] }] }, list: [user(1), secret(3)] },
    { blob: { inner: 'plain', size: 7 }, list: [pointer('Desk', 'd1')] },
  ].map((row, index) => ({
    objectId: `d${index}`,
    name: `desk ${index}`,
    text: index % 2 === 0 ? 'plain' : 'other',
    ...row,
    next: pointer('Desk', `d${(index + 1) % 7}`),
  }));
}

const MADE = { createdAt: '2024-01-01T00:00:00.000Z', updatedAt: '2024-01-02T00:00:00.000Z' };
const reads = { find: { '*': true }, get: { '*': true }, count: { '*': true }, update: { '*': true } };

function worldOfWithheld() {
  return {
    schemas: [
      {
        className: 'Desk',
        fields: {
          name: { type: 'String' },
          text: { type: 'String' },
          blob: { type: 'Object' },
          list: { type: 'Array' },
          next: { type: 'Pointer', targetClass: 'Desk' },
        },
        classLevelPermissions: reads,
      },
      {
        className: 'Board',
        fields: { text: { type: 'String' }, bag: { type: 'Object' }, pile: { type: 'Array' } },
        classLevelPermissions: reads,
      },
      { className: 'Secret', fields: { days: { type: 'Number' } }, classLevelPermissions: reads },
    ],
    users: [{ objectId: 'u0', username: 'mallory' }],
    objects: {
      Desk: desks(0).map(({ blob: _blob, list: _list, ...row }) => ({ ...row, ...MADE })),
      Board: [0, 1, 2, 3].map((index) => ({ objectId: `b${index}`, text: 'plain', ...MADE })),
      Secret: IDS.map((objectId, days) => ({ objectId, days, ...MADE })),
    },
  };
}

/** Columns that are written behind everybody's back: a seed, as a server, takes rows inside rows only as pointers. */
function storedColumns(
  world: 0 | 1,
): readonly (readonly [className: string, objectId: string, columns: Json])[] {
  const { secret } = slots(world);
  return [
    ...desks(world).map(({ objectId, blob, list }) => ['Desk', String(objectId), { blob, list }] as const),
    ...[0, 1, 2, 3].map((index) => {
      const held = index === 3 ? 'plain' : secret(index);
      return ['Board', `b${index}`, { bag: { inner: held }, pile: [held] }] as const;
    }),
  ];
}

/** One world in a database of its own. @param load how its classes and plain columns come there; default: as a seed */
export async function fillWithheld(
  database: MongoConnection,
  world: 0 | 1,
  load: (seed: unknown) => Promise<unknown> = (seed) => loadSeed(database, parseSeed(seed)),
): Promise<void> {
  await load(worldOfWithheld());
  for (const [className, objectId, $set] of storedColumns(world))
    await database.db.collection<{ _id: string }>(className).updateOne({ _id: objectId }, { $set });
}

export const WITHHELD_CONFIG = {
  agents: {
    master: { rateLimit: 1_000_000, permissions: 'write' },
    only: { rateLimit: 1_000_000, permissions: 'write', classes: { only: ['Desk', 'Board'] } },
    assumed: { rateLimit: 1_000_000, permissions: 'write', identity: { user: 'u0' } },
  },
  auth: ['master', 'only', 'assumed'].map((agent) => ({ apiKey: `key-${agent}`, agent })),
  policy: { classes: { Secret: { hidden: true }, _User: { hidden: true } } },
};
export const ASKERS = ['master', 'only', 'assumed'] as const;

/** Every form, of ids that stand in both worlds. */
const GUESSES = [...FORMS, ...USERS].map((form, index) => form(IDS[index % 3] as string));

const desk = (more: Json): Json => ({ class_name: 'Desk', ...more });
const stages = (way: string, ...pipeline: readonly Json[]): Question => [
  way,
  'aggregate',
  desk({ pipeline }),
];
const sorted = { $sort: { name: 1 } };
const COLUMNS = ['blob', 'list'];
const PATHS = ['blob', 'list', 'blob.inner', 'list.of', 'list.0'];

/** Conditions on one path, with and without a guess in them. */
const CONDITIONS: readonly unknown[] = [
  ...GUESSES,
  { $in: [...GUESSES, 'x'] },
  { $nin: GUESSES },
  ...GUESSES.slice(0, 2).map((guess) => ({ $all: [guess] })),
  [GUESSES[0]],
  'plain',
  null,
  { $ne: 'plain' },
  { $in: ['plain', 7] },
  { $exists: true },
  { $exists: false },
  { $gt: 0 },
  { $gt: '' },
  { $lt: 'Secret$s2' },
  { $gte: 'User$s1' },
  { $regex: '^Secret.s[01]' },
  { $regex: 's1$' },
  { $gt: pointer('Desk', 'd0') },
  { $lt: pointer('Zzz', 'd0') },
];

/** Conditions of a pipeline alone. */
const MATCHES: readonly unknown[] = [
  ...GUESSES.flatMap((guess, index) => [index % 2 === 0 ? { $gt: guess } : { $lte: guess }]),
  { $gt: { __type: 'O' } },
  { $lt: { className: 'Secret', objectId: 's2' } },
  { $gt: { className: 'Secret' } },
  { $gt: [] },
  { $size: 1 },
  { $type: 'string' },
  { $type: 'object' },
  { $elemMatch: { objectId: 's1' } },
  { $elemMatch: { $gt: 'Secret$s1' } },
  { $not: { $regex: 's1' } },
];

const whereQuestions: Question[] = PATHS.flatMap((path) =>
  CONDITIONS.flatMap((condition): Question[] => {
    const where = { [path]: condition };
    return [
      ['where', 'query_class', desk({ where, order: 'name' })],
      ['where, negated', 'count_objects', desk({ where: { $nor: [where] } })],
    ];
  }),
);

const matchQuestions: Question[] = PATHS.flatMap((path) =>
  [...CONDITIONS, ...MATCHES].flatMap((condition): Question[] => {
    const $match = { [path]: condition };
    return [
      stages('leading $match', { $match }, { $count: 'n' }),
      stages('later $match', sorted, { $match }, { $project: { name: 1 } }),
      stages('negated $match', { $match: { $nor: [$match] } }, { $count: 'n' }),
    ];
  }),
);

const inner = { className: 'Board', where: {} };
const otherQuestions: Question[] = [
  ...['blob', 'list', 'text', 'blob.inner'].flatMap((field) =>
    ['bag', 'bag.inner', 'pile', 'pile.0', 'text', 'bag.inner.objectId'].flatMap((key) =>
      ['$select', '$dontSelect'].map((operator): Question => {
        const where = { [field]: { [operator]: { query: inner, key } } };
        return [operator, 'query_class', desk({ where, order: 'name' })];
      }),
    ),
  ),
  ...[...PATHS, 'name'].flatMap((path) =>
    [path, `-${path}`].map((order): Question => ['order', 'query_class', desk({ order, keys: ['name'] })]),
  ),
  ...[...PATHS, 'name'].flatMap((field): Question[] => [
    ['group_by', 'group_by', desk({ field })],
    ['distinct', 'distinct', desk({ field })],
    ['export', 'export_data', desk({ columns: ['name'], order: field })],
    ['export of values', 'export_data', desk({ columns: ['name', field], order: 'name' })],
    ['group_by of values', 'group_by', desk({ field: 'text', operation: 'max', value_field: field })],
  ]),
  ...COLUMNS.flatMap((column): Question[] => {
    const value = `$${column}`;
    return [
      stages('$sort', { $sort: { [column]: 1, name: 1 } }, { $project: { name: 1 } }),
      stages('$group', { $group: { _id: value, n: { $sum: 1 } } }, { $sort: { n: -1, _id: 1 } }),
      stages(
        '$group of members',
        { $group: { _id: `${value}.inner`, n: { $sum: 1 } } },
        { $sort: { _id: 1 } },
      ),
      stages(
        '$addToSet',
        { $group: { _id: null, all: { $addToSet: value } } },
        { $project: { n: { $size: '$all' } } },
      ),
      stages('$max', { $group: { _id: null, low: { $min: value }, high: { $max: value } } }),
      stages(
        '$sortByCount',
        { $sortByCount: value },
        { $sort: { count: -1, _id: 1 } },
        { $project: { count: 1 } },
      ),
      stages('$bucket', {
        $bucket: { groupBy: { $cmp: [value, { $literal: GUESSES[0] }] }, boundaries: [-1, 0, 1, 2] },
      }),
      stages('$bucketAuto', { $bucketAuto: { groupBy: value, buckets: 3 } }, { $project: { count: 1 } }),
      stages(
        '$unwind',
        sorted,
        { $unwind: value },
        { $group: { _id: value, n: { $sum: 1 } } },
        { $sort: { n: 1, _id: 1 } },
      ),
      stages('$redact', sorted, {
        $redact: { $cond: [{ $gt: [value, { $literal: GUESSES[2] }] }, '$$KEEP', '$$PRUNE'] },
      }),
      stages('$expr', { $match: { $expr: { $in: [value, { $literal: GUESSES }] } } }, { $count: 'n' }),
      stages(
        '$expr of text',
        { $match: { $expr: { $eq: [{ $type: `${value}.inner` }, 'string'] } } },
        { $count: 'n' },
      ),
      stages('set operators', sorted, {
        $project: {
          name: 1,
          same: {
            $setEquals: [
              { $literal: GUESSES.slice(0, 1) },
              { $cond: [{ $isArray: [value] }, value, [value]] },
            ],
          },
          both: {
            $size: {
              $setIntersection: [{ $literal: GUESSES }, { $cond: [{ $isArray: [value] }, value, [value]] }],
            },
          },
        },
      }),
      stages('$objectToArray', sorted, {
        $project: { name: 1, n: { $strLenCP: { $toString: { $cmp: [value, { $literal: GUESSES[0] }] } } } },
      }),
      stages(
        '$unionWith',
        { $unionWith: { coll: 'Board', pipeline: [{ $project: { [column]: '$bag' } }] } },
        {
          $group: { _id: value, n: { $sum: 1 } },
        },
        { $sort: { n: 1, _id: 1 } },
        { $project: { n: 1 } },
      ),
      stages(
        'let of a join',
        {
          $lookup: {
            from: 'Board',
            let: { v: value },
            pipeline: [{ $match: { $expr: { $or: [{ $eq: ['$bag', '$$v'] }, { $eq: ['$pile', '$$v'] }] } } }],
            as: 'found',
          },
        },
        sorted,
        { $project: { name: 1, n: { $size: '$found' } } },
      ),
    ];
  }),
  stages(
    '$facet of whole rows',
    { $facet: { a: [{ $match: { name: 'desk 0' } }], b: [{ $match: { name: 'desk 5' } }] } },
    {
      $project: { order: { $cmp: ['$a', '$b'] } },
    },
  ),
  stages(
    '$facet and whole rows',
    sorted,
    { $facet: { all: [{ $limit: 7 }] } },
    {
      $project: { high: { $max: '$all' } },
    },
  ),
];

const JOINED = ['bag', 'bag.inner', 'pile', 'pile.0', 'bag.inner.objectId'];
const joinQuestions: Question[] = [
  ...JOINED.flatMap((foreignField): Question[] => [
    ...GUESSES.map((guess) =>
      stages(
        '$lookup with a literal',
        { $addFields: { guess: { $literal: guess } } },
        { $lookup: { from: 'Board', localField: 'guess', foreignField, as: 'found' } },
        sorted,
        { $project: { n: { $size: '$found' } } },
      ),
    ),
    ...['blob', 'list', 'blob.inner', 'text'].map((localField) =>
      stages(
        '$lookup of a column',
        { $lookup: { from: 'Board', localField, foreignField, as: 'found' } },
        sorted,
        { $project: { name: 1, n: { $size: '$found' } } },
      ),
    ),
  ]),
  ...['blob', 'list', 'blob.inner.objectId', 'objectId', 'text'].flatMap((connectToField) =>
    ['list', 'blob.inner', 'blob.inner.objectId', 'text'].flatMap((connectFromField): Question[] =>
      [
        { $literal: GUESSES },
        { $literal: ['s0', 's1', 'plain'] },
        '$blob.inner',
        '$list',
        { $literal: ['plain', 'd0', 7] },
      ].map((startWith) =>
        stages(
          '$graphLookup',
          { $graphLookup: { from: 'Desk', startWith, connectFromField, connectToField, as: 'found' } },
          sorted,
          { $project: { name: 1, n: { $size: '$found' } } },
        ),
      ),
    ),
  ),
  ...PATHS.flatMap((path) =>
    [...CONDITIONS, ...MATCHES].map((condition) =>
      stages(
        'restrictSearchWithMatch',
        {
          $graphLookup: {
            from: 'Desk',
            startWith: '$objectId',
            connectFromField: 'text',
            connectToField: 'objectId',
            restrictSearchWithMatch: { [path]: condition },
            as: 'found',
          },
        },
        sorted,
        { $project: { n: { $size: '$found' } } },
      ),
    ),
  ),
];

/** Every place where the database compares values of such columns for an agent; none of them changes a row. */
export const COMPARISONS: readonly Question[] = [
  ...whereQuestions,
  ...matchQuestions,
  ...otherQuestions,
  ...joinQuestions,
];

/** Changes of a list that tell by the row they leave whether a value was in it. */
export const LIST_WRITES: readonly Question[] = GUESSES.flatMap((guess) =>
  ['AddUnique', 'Remove'].map((__op): Question => [
    __op,
    'update_object',
    desk({ object_id: 'd0', fields: { list: { __op, objects: [guess] } } }),
  ]),
);
