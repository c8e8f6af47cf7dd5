import type { SeededRandom } from './seeded-random.js';

const MISSING = [3, 7, 12];
const NULLS = [5, 9];

/** Rows some of whose columns are null or absent. */
export const PIPELINE_ROWS = {
  schemas: [
    {
      className: 'Task',
      fields: {
        name: { type: 'String' },
        count: { type: 'Number' },
        due: { type: 'Date' },
        done: { type: 'Boolean' },
        tags: { type: 'Array' },
        meta: { type: 'Object' },
        owner: { type: 'Pointer', targetClass: 'Person' },
      },
    },
    { className: 'Person', fields: { name: { type: 'String' }, born: { type: 'Date' } } },
  ],
  objects: {
    Person: ['Ada', 'Bob', null].map((name, index) => ({
      objectId: `person${index}`,
      name,
      ...(index > 0 && { born: { __type: 'Date', iso: `199${index}-05-0${index}T00:00:00.000Z` } }),
    })),
    Task: Array.from({ length: 16 }, (_, index) => ({
      objectId: `task${index}`,
      name: ['plan', 'PLAN', 'build', 'ship.it', 'a+b'][index % 5],
      done: index % 3 === 0,
      tags: index % 4 === 0 ? [] : [`t${index % 3}`, null],
      meta: { colour: index % 2 === 0 ? 'red' : null },
      ...(!MISSING.includes(index) && {
        count: NULLS.includes(index) ? null : index % 6,
        due: NULLS.includes(index)
          ? null
          : { __type: 'Date', iso: `2024-0${1 + (index % 6)}-1${index % 9}T08:00:00.000Z` },
      }),
      ...(index % 4 !== 3 && {
        owner: { __type: 'Pointer', className: 'Person', objectId: `person${index % 3}` },
      }),
    })),
  },
};

const DAY = '2024-03-15T00:00:00.000Z';

type Stage = Readonly<Record<string, unknown>>;
type Make = (random: SeededRandom) => unknown;

const KEYS: readonly Make[] = [
  () => null,
  () => '$name',
  () => '$due',
  () => '$owner',
  () => ({ name: '$name', none: null }),
  () => ({ $ifNull: ['$count', null] }),
  () => ({ $cond: [{ $lt: ['$due', DAY] }, 'early', null] }),
  () => ({ $dateTrunc: { date: '$due', unit: 'month' } }),
  () => ({ $dateToString: { date: '$due', format: '%Y-%m', onNull: null } }),
  () => ({ $ifNull: ['$due', DAY] }),
];

const SUMS: readonly Make[] = [
  () => ({ $sum: 1 }),
  () => ({ $sum: { $cond: [{ $eq: ['$count', null] }, 1, 0] } }),
  () => ({ $sum: { $cond: [{ $eq: ['$due', null] }, 1, 0] } }),
  () => ({ $sum: { $cond: [{ $lt: ['$due', DAY] }, 1, 0] } }),
  () => ({ $sum: { $cond: [{ $in: ['$count', [null, 1, 2]] }, 1, 0] } }),
  () => ({ $max: { $ifNull: ['$due', DAY] } }),
  () => ({ $min: '$due' }),
  () => ({ $push: { $ifNull: ['$count', null] } }),
  () => ({ $addToSet: { $literal: null } }),
  () => ({ $sum: { $cond: [{ $regexMatch: { input: '$name', regex: '^p', options: 'i' } }, 1, 0] } }),
  () => ({ $avg: '$count' }),
];

const CONDITIONS: readonly Make[] = [
  () => ({ count: null }),
  () => ({ count: { $ne: null } }),
  () => ({ due: { $gte: DAY } }),
  () => ({ $or: [{ due: null }, { due: { $lt: DAY } }] }),
  () => ({ name: { $regex: '^p', $options: 'i' } }),
  () => ({ name: { $regex: 'i', $ne: 'ship.it' } }),
  () => ({ name: { $regex: '^ship\\.' } }),
  () => ({ count: { $in: [null, 1, 3] } }),
  () => ({ owner: { __type: 'Pointer', className: 'Person', objectId: 'person1' } }),
  () => ({ objectId: { $gte: 'task2' } }),
  () => ({ $expr: { $gt: ['$due', DAY] } }),
  () => ({ 'meta.colour': null }),
];

const SHAPES: readonly Make[] = [
  () => ({ $project: { name: 1, none: { $literal: null }, late: { $gt: ['$due', DAY] } } }),
  () => ({ $project: { month: { $month: '$due' }, either: { $ifNull: ['$count', null] } } }),
  () => ({ $addFields: { limit: { $ifNull: ['$due', DAY] }, none: null } }),
  () => ({ $lookup: { from: 'Person', localField: 'owner', foreignField: '_id', as: 'people' } }),
  () => ({ $unwind: { path: '$tags', preserveNullAndEmptyArrays: true } }),
  () => ({ $sort: { count: 1, objectId: 1 } }),
];

/** A pipeline over tasks: conditions, shapes and groups in random order and number. */
export function randomPipeline(random: SeededRandom): Stage[] {
  const stages: Stage[] = [];
  const add = (chance: number, make: () => Stage) => {
    if (random.chance(chance)) stages.push(make());
  };
  const match = (): Stage => ({
    $match: Object.assign({}, ...random.some(CONDITIONS, 0.2).map((make) => make(random))) as Stage,
  });
  add(0.6, match);
  const shaped = random.chance(0.3);
  if (shaped) stages.push(random.pick(SHAPES)(random) as Stage);
  add(0.2, match);
  if (random.chance(shaped ? 0.2 : 0.8)) {
    const names = random.chance(0.1) ? ['objectId', 'createdAt', 'owner'] : ['first', 'second', 'third'];
    const sums = random.some(SUMS, 0.35).map((make, index) => [names[index] ?? `sum${index}`, make(random)]);
    stages.push({ $group: Object.fromEntries([['_id', random.pick(KEYS)(random)], ...sums]) as Stage });
    add(0.3, () => ({ $sort: { _id: -1 } }));
  }
  return stages.length > 0 ? stages : [{ $match: {} }];
}
