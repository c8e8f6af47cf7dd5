import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENT, unhurried } from '#data/contracts';
import { type ClassAccess, FieldNames, governPipeline, type SchemaSnapshot, validatePipeline } from '#policy';
import { TestDatabase } from '../test-database.contract.js';

/**
 * Random pipelines over a date column, asked three times: with ISO text and with typed dates under the policy, and with dates of
 * the driver directly at the database. `day` stands for a date, as `{ day: '2024-03-01' }`.
 */
type Json = Record<string, unknown>;

const DAYS = [
  '2024-01-31',
  '2024-02-29T12:30:00Z',
  '2024-03-01',
  '2024-03-31T23:59:59.999+02:00',
  '2025-01-01',
];
const day = fc.constantFrom(...DAYS).map((text) => ({ day: text }));
const ascending = fc.subarray(DAYS, { minLength: 2 }).map((texts) => texts.map((text) => ({ day: text })));

/** What is known of the documents at a place of the pipeline. */
interface Known {
  /** Paths to dates. */
  readonly dates: readonly string[];
  /** Paths to lists of dates. */
  readonly lists: readonly string[];
  /** Paths through lists, which lead to each date only in a filter. */
  readonly within: readonly string[];
}

const from = (paths: readonly string[]) => fc.constantFrom(...paths).map((path) => `$${path}`);
const ORDERS = ['$eq', '$ne', '$gt', '$gte', '$lt', '$lte'];
const order = fc.constantFrom(...ORDERS);

/** A date of each document. */
function toDate({ dates }: Known): fc.Arbitrary<unknown> {
  const path = from(dates);
  return fc.oneof(
    { weight: 4, arbitrary: path },
    path.map((date) => ({ $dateTrunc: { date, unit: 'month' } })),
    path.map((startDate) => ({ $dateAdd: { startDate, unit: 'day', amount: 1 } })),
    path.map((startDate) => ({ $dateSubtract: { startDate, unit: 'hour', amount: 1 } })),
    path.map((date) => ({ $toDate: date })),
    path.map((date) => ({ $add: [date, 1000] })),
    fc.tuple(path, day).map(([date, other]) => ({ $ifNull: [date, other] })),
    fc
      .tuple(path, day, fc.constantFrom('$max', '$min'))
      .map(([date, other, pick]) => ({ [pick]: [date, other] })),
    fc.tuple(path, day).map(([date, other]) => ({ $cond: [{ $gt: [date, other] }, date, other] })),
    fc.tuple(path, day).map(([date, other]) => ({
      // oxlint-disable-next-line unicorn/no-thenable -- a branch of $switch
      $switch: { branches: [{ case: { $lt: [date, other] }, then: other }], default: date },
    })),
    fc.tuple(path, day).map(([date, other]) => ({
      $reduce: { input: [date], initialValue: other, in: { $max: ['$$value', '$$this'] } },
    })),
  );
}

/** An expression that compares, and cannot fail. */
function toComparable(known: Known): fc.Arbitrary<unknown> {
  const date = toDate(known);
  const lists = known.lists.length > 0 ? from(known.lists) : from(known.dates).map((path) => [path, path]);
  return fc.oneof(
    fc.tuple(order, date, day).map(([operator, left, right]) => ({ [operator]: [left, right] })),
    fc.tuple(order, day, date).map(([operator, left, right]) => ({ [operator]: [left, right] })),
    fc.tuple(date, day).map((operands) => ({ $gt: [{ $cmp: operands }, 0] })),
    fc.tuple(date, ascending).map((operands) => ({ $in: operands })),
    fc.tuple(day, lists).map((operands) => ({ $in: operands })),
    fc.tuple(lists, day).map((operands) => ({ $gte: [{ $indexOfArray: operands }, 0] })),
    fc.tuple(lists, ascending).map((operands) => ({ $setIsSubset: operands })),
    fc.tuple(lists, ascending).map((operands) => ({ $setEquals: operands })),
    fc.tuple(lists, ascending).map((operands) => ({ $gt: [{ $size: { $setIntersection: operands } }, 0] })),
    fc.tuple(lists, ascending).map((operands) => ({ $gt: [{ $size: { $setDifference: operands } }, 0] })),
    fc.tuple(order, lists, day).map(([operator, input, other]) => ({
      $gt: [{ $size: { $filter: { input, cond: { [operator]: ['$$this', other] } } } }, 0],
    })),
    fc.tuple(order, lists, day).map(([operator, input, other]) => ({
      $anyElementTrue: { $map: { input, as: 'each', in: { [operator]: ['$$each', other] } } },
    })),
    fc
      .tuple(order, date, day)
      .map(([operator, v, w]) => ({ $let: { vars: { v, w }, in: { [operator]: ['$$v', '$$w'] } } })),
    fc
      .tuple(date, day)
      .map(([startDate, endDate]) => ({ $gt: [{ $dateDiff: { startDate, endDate, unit: 'day' } }, 3] })),
    fc.tuple(date, day).map((operands) => ({ $gt: [{ $subtract: operands }, 0] })),
    day.map((other) => ({ $eq: [{ $month: other }, 3] })),
  );
}

const condition = (known: Known) =>
  fc.oneof(
    fc
      .tuple(fc.constantFrom(...known.dates, ...known.within), order, day)
      .map(([path, operator, other]) => ({ [path]: { [operator]: other } })),
    fc.tuple(fc.constantFrom(...known.dates), day).map(([path, other]) => ({ [path]: other })),
    fc
      .tuple(fc.constantFrom(...known.dates), ascending, fc.constantFrom('$in', '$nin'))
      .map(([path, listed, operator]) => ({
        [path]: { [operator]: [...listed, null] },
      })),
    fc.tuple(fc.constantFrom(...known.dates), order, day).map(([path, operator, other]) => ({
      $nor: [{ [path]: { $not: { [operator]: other } } }],
    })),
    fc
      .tuple(order, from(known.dates), day)
      .map(([operator, path, other]) => ({ $expr: { [operator]: [path, other] } })),
  );

interface Step {
  readonly stages: readonly Json[];
  readonly known: Known;
}

const dates = (...paths: readonly string[]): Known => ({ dates: paths, lists: [], within: [] });

/** Stages, and what is known behind them. */
function steps(known: Known): fc.Arbitrary<Step> {
  const date = toDate(known);
  const inner = condition(known);
  const findKept = (stages: fc.Arbitrary<Json>, behind: Known = known) =>
    stages.map((stage) => ({ stages: [stage], known: behind }));
  const within = (path: string) => ({ ...known, within: [...known.within, path] });
  const source = dates('at', 'until');
  const atSource = condition(source);
  // A search of a graph takes no expressions.
  const plainAtSource = atSource.filter((where) => !('$expr' in where));
  return fc.oneof(
    findKept(inner.map(($match) => ({ $match }))),
    findKept(toComparable(known).map((yes) => ({ $addFields: { yes } }))),
    findKept(
      date.map((made) => ({ $set: { made } })),
      { ...known, dates: [...known.dates, 'made'] },
    ),
    findKept(
      date.map((made) => ({ $project: { made, key: { of: '$n' } } })),
      dates('made'),
    ),
    findKept(
      fc.tuple(date, date).map(([_id, other]) => ({
        $group: { _id, last: { $max: other }, all: { $push: { $ifNull: [other, { day: DAYS[0] }] } } },
      })),
      { dates: ['_id', 'last'], lists: ['all'], within: ['all'] },
    ),
    date.map((all) => ({
      stages: [{ $group: { _id: null, all: { $addToSet: all } } }, { $unwind: '$all' }],
      known: dates('all'),
    })),
    findKept(
      fc.tuple(date, ascending).map(([groupBy, boundaries]) => ({
        $bucket: { groupBy, boundaries, default: 'other', output: { first: { $min: groupBy } } },
      })),
      dates('first'),
    ),
    findKept(
      date.map((groupBy) => ({ $bucketAuto: { groupBy, buckets: 2 } })),
      dates('_id.min', '_id.max'),
    ),
    findKept(
      date.map(($sortByCount) => ({ $sortByCount })),
      dates('_id'),
    ),
    findKept(
      date.map((made) => ({ $replaceWith: { made } })),
      dates('made'),
    ),
    findKept(
      date.map((made) => ({ $replaceRoot: { newRoot: { inside: { made } } } })),
      dates('inside.made'),
    ),
    findKept(toComparable(known).map((keep) => ({ $redact: { $cond: [keep, '$$KEEP', '$$PRUNE'] } }))),
    inner.map(($match) => ({
      stages: [
        { $facet: { a: [{ $match }, { $project: { at: `$${known.dates[0]}` } }, { $sort: { at: 1 } }] } },
        { $unwind: '$a' },
      ],
      known: dates('a.at'),
    })),
    findKept(
      fc.tuple(atSource, date).map(([$match, at]) => ({
        $lookup: {
          from: 'Event',
          let: { at },
          pipeline: [
            { $match },
            { $match: { $expr: { $gt: ['$$at', { day: DAYS[1] }] } } },
            { $sort: { n: 1 } },
          ],
          as: 'others',
        },
      })),
      within('others.at'),
    ),
    findKept(
      atSource.map(($match) => ({ $unionWith: { coll: 'Event', pipeline: [{ $match }] } })),
      source,
    ),
    findKept(
      plainAtSource.map((restrictSearchWithMatch) => ({
        $graphLookup: {
          from: 'Event',
          startWith: 2,
          connectFromField: 'n',
          connectToField: 'n',
          as: 'found',
          restrictSearchWithMatch,
        },
      })),
      within('found.until'),
    ),
  );
}

/** A pipeline of up to four steps; `$unionWith` only over the class itself, where its rows have the same columns. */
const pipelines: fc.Arbitrary<readonly Json[]> = steps(dates('at', 'until'))
  .chain((first) =>
    steps(first.known).map((next) => ({ ...next, stages: [...first.stages, ...next.stages] })),
  )
  .chain((step) => condition(step.known).map(($match) => [...step.stages, { $match }]))
  .filter((stages) => stages.findIndex((stage) => '$unionWith' in stage) <= 0);

/** The value with another in place of each `{ day }`. */
function withDays(value: unknown, made: (text: string) => unknown): unknown {
  if (Array.isArray(value)) return value.map((entry) => withDays(entry, made));
  if (value === null || typeof value !== 'object') return value;
  if ('day' in value) return made(String(value.day));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withDays(member, made)]));
}

const ROWS = Array.from({ length: 14 }, (_, n) => ({
  _id: `e${n}`,
  n,
  ...(n % 5 !== 4 && { at: new Date(DAYS[n % 5] as string) }),
  until: new Date(Date.UTC(2024, n, 1 + n)),
}));

const NEEDED = [
  ...ORDERS,
  ...'$cmp $in $nin $indexOfArray $setIsSubset $setEquals $setIntersection $setDifference $filter $map $reduce $let'.split(
    ' ',
  ),
  ...'$max $min $ifNull $cond $switch $dateDiff $dateTrunc $dateAdd $dateSubtract $toDate $subtract $month $expr $nor $not'.split(
    ' ',
  ),
  ...'$match $addFields $set $project $group $unwind $bucket $bucketAuto $sortByCount $replaceWith $replaceRoot'.split(
    ' ',
  ),
  ...'$redact $facet $lookup $unionWith $graphLookup'.split(' '),
];

/** Rows of an answer in one order, whatever made them. Ids of rows keep their two names. */
const sorted = (rows: readonly unknown[]): string[] =>
  rows.map((row) => JSON.stringify(row).replaceAll('"objectId":', '"_id":')).toSorted();

describe('dates in random pipelines', PATIENT, () => {
  let database: TestDatabase;
  let store: ReturnType<TestDatabase['openDeclared']>;
  let schemas: SchemaSnapshot;
  beforeAll(async () => {
    database = await TestDatabase.start();
    store = database.openDeclared({
      parse: new Set(['Stored']),
      plain: [
        {
          className: 'Event',
          collection: 'Event',
          id: 'string',
          timestamps: null,
          properties: new Map([
            ['at', { type: 'Date' }],
            ['until', { type: 'Date' }],
            ['n', { type: 'Number' }],
          ] as const),
        },
      ],
    });
    const { db } = store.connection;
    await db.collection<(typeof ROWS)[0]>('Event').insertMany(ROWS);
    await db
      .collection<{ _id: string }>('_SCHEMA')
      .insertOne({ _id: 'Stored', objectId: 'string', at: 'date', until: 'date', n: 'number' } as never);
    await db
      .collection<{ _id: string }>('Stored')
      .insertMany(ROWS.map((row) => ({ ...row, _created_at: row.until, _updated_at: row.until })));
    schemas = await store.catalogue.snapshot();
  });
  afterAll(async () => {
    await store.close();
    await database.stop();
  });

  const accessTo = (className: string): ClassAccess => ({
    className,
    schema: schemas.get(className),
    names: new FieldNames(),
    readable: null,
  });

  async function governed(stages: unknown, className: string): Promise<string[]> {
    const access = accessTo(className);
    const pipeline = governPipeline(validatePipeline(stages), { access, where: {} }, () => ({
      access,
      where: {},
    }));
    return sorted((await store.reader.aggregate({ className, pipeline }, unhurried())).rows);
  }

  it('mean the same as ISO text, as typed values and as dates of the driver, in both storage forms', async () => {
    let found = 0;
    await fc.assert(
      fc.asyncProperty(pipelines, async (stages) => {
        const typed = withDays(stages, (iso) => ({ __type: 'Date', iso }));
        const text = withDays(stages, (iso) => iso);
        const asked = await governed(text, 'Event');
        const plainDates = withDays(stages, (iso) => new Date(iso)) as Json[];
        const direct = await store.connection.db.collection('Event').aggregate(plainDates).toArray();
        expect(asked).toEqual(sorted(direct));
        expect(await governed(typed, 'Event')).toEqual(asked);
        const inParse = JSON.parse(JSON.stringify(text).replaceAll('"Event"', '"Stored"')) as unknown;
        const typedInParse = JSON.parse(JSON.stringify(typed).replaceAll('"Event"', '"Stored"')) as unknown;
        expect(await governed(inParse, 'Stored')).toEqual(await governed(typedInParse, 'Stored'));
        found += Number(asked.length > 0);
      }),
      { numRuns: 120 },
    );
    expect(found).toBeGreaterThan(30);
  });

  it('reach every stage and every operator that compares', () => {
    const met = new Set<string>();
    for (const stages of fc.sample(pipelines, 2000))
      for (const [operator] of JSON.stringify(stages).matchAll(/\$[a-z][A-Za-z]*(?=":)/g)) met.add(operator);
    expect(NEEDED.filter((operator) => !met.has(operator))).toEqual([]);
  });
});
