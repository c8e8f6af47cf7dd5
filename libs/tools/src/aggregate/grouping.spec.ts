import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GovernedRecords, ParseRow } from '#data';
import type { ClassPolicy, FieldSchema } from '#policy';
import { callOf, sampleClass, SampleRecords } from '../contracts/sample-records.js';
import type { ToolCall } from '../tool.js';
import { Distinct } from './distinct.js';
import { GroupBy } from './group-by.js';
import { GroupByDate } from './group-by-date.js';

const FIELDS: Readonly<Record<string, FieldSchema>> = {
  genre: { type: 'String' },
  artist: { type: 'Pointer', targetClass: 'Artist' },
  plays: { type: 'Number' },
  tags: { type: 'Array' },
  fans: { type: 'Relation', targetClass: '_User' },
  releasedAt: { type: 'Date' },
};

type Run = (args: object) => Promise<Record<string, unknown>>;
type Handler = (args: Readonly<Record<string, unknown>>, call: ToolCall) => Promise<object>;

function over(tool: object, handler: Handler, rows: readonly ParseRow[], policy: Partial<ClassPolicy> = {}) {
  const records = new SampleRecords(rows, [sampleClass('Song', FIELDS, policy)]);
  const run: Run = async (args) => ({
    ...(await handler({ class_name: 'Song', ...args }, callOf(tool, records as GovernedRecords))),
  });
  return { records, run };
}

const groupBy = (rows: readonly ParseRow[] = [], policy: Partial<ClassPolicy> = {}) => {
  const tool = new GroupBy();
  return over(tool, (args, call) => tool.group(args, call), rows, policy);
};
const groupByDate = (rows: readonly ParseRow[] = [], policy: Partial<ClassPolicy> = {}) => {
  const tool = new GroupByDate();
  return over(tool, (args, call) => tool.group(args, call), rows, policy);
};
const distinct = (rows: readonly ParseRow[] = []) => {
  const tool = new Distinct();
  return over(tool, (args, call) => tool.distinct(args, call), rows);
};

const withheld = { className: 'Label', __redacted: true };
const stagesOf = (records: SampleRecords) =>
  (records.asked.at(-1)?.options as { pipeline: unknown }).pipeline;

describe('group_by', () => {
  it('answers with groups in the order they came, absent values as "null"', async () => {
    const { run } = groupBy([{ _id: 'rock', value: 2 }, { _id: null, value: 1 }, { value: 4 }]);
    expect(Object.entries(await run({ field: 'genre' }))).toEqual([
      ['class_name', 'Song'],
      ['field', 'genre'],
      ['operation', 'count'],
      ['group_count', 3],
      [
        'groups',
        [
          { key: 'rock', value: 2 },
          { key: 'null', value: 1 },
          { key: 'null', value: 4 },
        ],
      ],
      ['limit', 200],
    ]);
  });

  it.each<[string, object, object[]]>([
    ['counts', {}, [{ $group: { _id: '$genre', value: { $sum: 1 } } }, { $limit: 201 }]],
    [
      'sums',
      { operation: 'sum', value_field: 'plays' },
      [{ $group: { _id: '$genre', value: { $sum: '$plays' } } }, { $limit: 201 }],
    ],
    [
      'averages under either name, in any case',
      { operation: 'AVERAGE', value_field: 'plays' },
      [{ $group: { _id: '$genre', value: { $avg: '$plays' } } }, { $limit: 201 }],
    ],
    [
      'flattens, sorts and limits',
      { flatten_arrays: true, sort: 'key_asc', limit: 3 },
      [
        { $unwind: '$genre' },
        { $group: { _id: '$genre', value: { $sum: 1 } } },
        { $sort: { _id: 1 } },
        { $limit: 4 },
      ],
    ],
    [
      'sorts by value',
      { sort: 'value_desc' },
      [{ $group: { _id: '$genre', value: { $sum: 1 } } }, { $sort: { value: -1 } }, { $limit: 201 }],
    ],
  ])('%s', async (_, args, stages) => {
    const { records, run } = groupBy();
    await run({ field: 'genre', ...args });
    expect(stagesOf(records)).toEqual(stages);
  });

  it('hands the constraint on as the caller wrote it, and never an opt-out', async () => {
    const { records, run } = groupBy();
    await run({ field: 'genre', where: { plays: { $gt: 1 } }, apply_canonical_filter: false });
    expect(records.asked[0]?.options).toEqual({
      pipeline: expect.any(Array),
      where: { plays: { $gt: 1 } },
    });
  });

  it.each<[string, unknown[], unknown[], string | undefined]>([
    ['one class: ids, and the class', ['Artist$a1', null, 'Artist$a2'], ['a1', 'null', 'a2'], 'Artist'],
    ['two classes: as stored', ['Artist$a1', 'Band$b1'], ['Artist$a1', 'Band$b1'], undefined],
    ['a withheld class: nothing of it', [withheld, withheld], ['null', 'null'], undefined],
    ['one withheld among others', ['Artist$a1', withheld], ['Artist$a1', 'null'], undefined],
    ['something that is no pointer', ['Artist$a1', 'free text'], ['Artist$a1', 'free text'], undefined],
    ['no value at all', [null], ['null'], undefined],
  ])('shows pointers of %s', async (_, keys, shown, pointerClass) => {
    const { run } = groupBy(keys.map((_id) => ({ _id, value: 1 })));
    const answer = await run({ field: 'artist' });
    expect((answer['groups'] as { key: unknown }[]).map(({ key }) => key)).toEqual(shown);
    expect(answer['pointer_class']).toBe(pointerClass);
  });

  it('shows pointers in lists as it shows others', async () => {
    const pointer = { __type: 'Pointer', className: 'Artist', objectId: 'a1' };
    const answer = await groupBy([{ _id: pointer, value: 1 }]).run({ field: 'tags', flatten_arrays: true });
    expect(answer).toMatchObject({ groups: [{ key: 'a1' }], pointer_class: 'Artist', flatten_arrays: true });
  });

  it('leaves text alone that only looks like a pointer', async () => {
    const answer = await groupBy([{ _id: 'USD$5', value: 1 }]).run({ field: 'genre' });
    expect(answer).toMatchObject({ groups: [{ key: 'USD$5', value: 1 }] });
    expect(answer).not.toHaveProperty('pointer_class');
  });

  it('never shows anything of a withheld class, whatever stands beside it', async () => {
    const key = fc.oneof(
      fc.constantFrom<unknown>(null, 'Artist$a1', 'Artist$a2', 'Band$b', 'text', 5),
      fc.constant(withheld),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(key), fc.constantFrom('artist', 'genre', 'tags'), async (keys, field) => {
        const answer = await groupBy(keys.map((_id) => ({ _id, value: 1 }))).run({ field });
        expect(JSON.stringify(answer)).not.toMatch(/Label|redacted/);
        expect(answer['groups']).toHaveLength(keys.length);
      }),
    );
  });

  it('says when there were more groups than it shows', async () => {
    const rows = Array.from({ length: 3 }, (_, value) => ({ _id: `g${value}`, value }));
    expect(await groupBy(rows).run({ field: 'genre', limit: 2 })).toMatchObject({
      group_count: 2,
      truncated: true,
      limit: 2,
    });
    expect(await groupBy(rows).run({ field: 'genre', limit: 3 })).not.toHaveProperty('truncated');
  });

  it.each<[string, Partial<ClassPolicy>, string]>([
    ['where that pointer may be read', { fields: ['artist'] }, '$artist'],
    ['where nothing limits fields', {}, '$artist'],
    ['as written where it may not, to be refused', { fields: ['genre'] }, '$_p_artist'],
  ])('takes the storage form of a pointer for its field %s', async (_, policy, reference) => {
    const { records, run } = groupBy([], policy);
    await run({ field: '_p_artist' });
    expect(stagesOf(records)).toMatchObject([{ $group: { _id: reference } }, { $limit: 201 }]);
  });

  it.each<[object, RegExp]>([
    [{}, /^Invalid arguments: field is required$/],
    [{ field: 5 }, /field must be a string/],
    [{ field: 'a.b' }, /field must be one field name/],
    [{ field: '$genre' }, /field must be one field name/],
    [{ field: '_hashed_password' }, /field must be one field name/],
    [{ field: '__proto__' }, /field must be one field name/],
    [{ field: 'genre', operation: 'median' }, /operation must be one of/],
    [{ field: 'genre', operation: 'sum' }, /value_field is required for operation sum/],
    [{ field: 'genre', operation: 'max', value_field: '$$ROOT' }, /value_field must be one field name/],
    [{ field: 'genre', limit: 0 }, /limit must be between 1 and 1000/],
    [{ field: 'genre', limit: 1001 }, /limit must be between 1 and 1000/],
    [{ field: 'genre', limit: 1.5 }, /limit must be between 1 and 1000/],
    [{ field: 'genre', sort: 'random' }, /sort must be one of/],
    [{ field: 'genre', flatten_arrays: 1 }, /flatten_arrays must be true or false/],
    [{ field: 'genre', dry_run: 'yes' }, /dry_run must be true or false/],
  ])('refuses %j before anything is read', async (args, message) => {
    const { records, run } = groupBy();
    await expect(run(args)).rejects.toMatchObject({
      refusal: { code: 'invalid_argument', message: expect.stringMatching(message) as string },
    });
    expect(records.asked).toEqual([]);
  });
});

describe('group_by_date', () => {
  const date = { $cond: [{ $eq: [{ $type: '$releasedAt' }, 'date'] }, '$releasedAt', null] };
  const parts = { year: 2024, month: 3, week: 9, day: 7, hour: 14, minute: 5, second: 9 };

  it.each([
    ['year', 2024, '2024'],
    ['year', 33, '0033'],
    ['month', parts, '2024-03'],
    ['week', parts, '2024-W09'],
    ['week', { year: 2024, week: 0 }, '2024-W00'],
    ['day', parts, '2024-03-07'],
    ['hour', parts, '2024-03-07 14:00'],
    ['minute', parts, '2024-03-07 14:05'],
    ['second', parts, '2024-03-07 14:05:09'],
    ['SECOND', { ...parts, second: null }, 'null'],
    ['year', null, 'null'],
    ['day', null, 'null'],
    ['month', { year: 2024 }, 'null'],
  ])('per %s writes %j as %s', async (interval, _id, key) => {
    const { run } = groupByDate([{ _id, value: 1 }]);
    expect(await run({ field: 'releasedAt', interval })).toMatchObject({
      interval: interval.toLowerCase(),
      groups: [{ key, value: 1 }],
    });
  });

  it('groups what is a date by its parts, and anything else together', async () => {
    const { records, run } = groupByDate();
    await run({ field: 'releasedAt', interval: 'week' });
    expect(stagesOf(records)).toEqual([
      { $group: { _id: { year: { $year: date }, week: { $week: date } }, value: { $sum: 1 } } },
      { $sort: { _id: 1 } },
      { $limit: 201 },
    ]);
  });

  it.each([
    ['Europe/Berlin'],
    ['UTC'],
    ['Etc/GMT+3'],
    ['+02:00'],
    ['-0330'],
    [' America/Argentina/Ushuaia '],
  ])('reads the parts of a date in time zone %s', async (timezone) => {
    const { records, run } = groupByDate();
    const answer = await run({ field: 'releasedAt', interval: 'year', timezone });
    const zone = timezone.trim();
    expect(answer).toMatchObject({ timezone: zone });
    expect(stagesOf(records)).toMatchObject([
      { $group: { _id: { $year: { date, timezone: zone } } } },
      {},
      {},
    ]);
  });

  it('takes a blank time zone for none', async () => {
    const { run } = groupByDate();
    expect(await run({ field: 'releasedAt', interval: 'day', timezone: ' ' })).not.toHaveProperty('timezone');
  });

  it('orders keys as texts, whatever order the parts came in', async () => {
    const rows = [
      { _id: null, value: 1 },
      { _id: { year: 2024, month: 2 }, value: 2 },
      { _id: { year: 2023, month: 11 }, value: 3 },
    ];
    const keys = async (args: object) =>
      (
        (await groupByDate(rows).run({ field: 'releasedAt', interval: 'month', ...args }))[
          'groups'
        ] as object[]
      ).map((group) => (group as { key: string }).key);
    expect(await keys({})).toEqual(['2023-11', '2024-02', 'null']);
    expect(await keys({ sort: 'key_desc' })).toEqual(['null', '2024-02', '2023-11']);
    expect(await keys({ sort: 'value_asc' })).toEqual(['null', '2024-02', '2023-11']);
  });

  it.each<[object, RegExp]>([
    [{ field: 'releasedAt' }, /interval is required/],
    [{ field: 'releasedAt', interval: 'decade' }, /interval must be one of/],
    [{ field: 'releasedAt', interval: 'day', timezone: 'no zone!' }, /timezone must be/],
    [{ field: 'releasedAt', interval: 'day', timezone: '+2' }, /timezone must be/],
    [{ field: 'artist', interval: 'day' }, /'artist' is of type Pointer/],
    [{ field: '_p_artist', interval: 'day' }, /'_p_artist' is of type Pointer/],
    [{ field: 'tags', interval: 'day' }, /'tags' is of type Array/],
    [{ field: 'fans', interval: 'day' }, /'fans' is of type Relation/],
  ])('refuses %j before anything is read', async (args, message) => {
    const { records, run } = groupByDate();
    await expect(run(args)).rejects.toMatchObject({
      refusal: { code: 'invalid_argument', message: expect.stringMatching(message) as string },
    });
    expect(records.asked).toEqual([]);
  });

  it('tells no type of a field that may not be read', async () => {
    const { records, run } = groupByDate([], { fields: ['genre'] });
    await run({ field: 'tags', interval: 'day' });
    expect(records.asked.map(({ method }) => method)).toEqual(['aggregate']);
  });
});

describe('distinct', () => {
  it('answers with values, a missing one as null', async () => {
    const { run } = distinct([{ _id: 'jazz' }, { _id: null }, { _id: 7 }]);
    expect(Object.entries(await run({ field: 'genre', sort: 'asc' }))).toEqual([
      ['class_name', 'Song'],
      ['field', 'genre'],
      ['count', 3],
      ['values', ['jazz', null, 7]],
      ['sort', 'asc'],
      ['limit', 1000],
    ]);
  });

  it.each<[object, object[]]>([
    [{}, [{ $group: { _id: '$genre' } }, { $limit: 1001 }]],
    [{ sort: 'none' }, [{ $group: { _id: '$genre' } }, { $limit: 1001 }]],
    [{ sort: '' }, [{ $group: { _id: '$genre' } }, { $limit: 1001 }]],
    [
      { sort: 'DESC', limit: 5000 },
      [{ $group: { _id: '$genre' } }, { $sort: { _id: -1 } }, { $limit: 5001 }],
    ],
  ])('runs %j as its pipeline', async (args, stages) => {
    const { records, run } = distinct();
    await run({ field: 'genre', ...args });
    expect(stagesOf(records)).toEqual(stages);
  });

  it('names the class of pointers, and nothing of one that is withheld', async () => {
    expect(await distinct([{ _id: 'Artist$a1' }, { _id: null }]).run({ field: 'artist' })).toMatchObject({
      values: ['a1', null],
      pointer_class: 'Artist',
    });
    const hidden = await distinct([{ _id: withheld }, { _id: withheld }]).run({ field: 'artist' });
    expect(hidden).toMatchObject({ count: 2, values: [null, null] });
    expect(hidden).not.toHaveProperty('pointer_class');
  });

  it.each([[0], [5001], ['9']])('refuses limit %j', async (limit) => {
    await expect(distinct().run({ field: 'genre', limit })).rejects.toMatchObject({
      refusal: { message: 'Invalid arguments: limit must be between 1 and 5000' },
    });
  });
});

describe('a dry run', () => {
  it.each<[string, { records: SampleRecords; run: Run }, object, object]>([
    [
      'group_by',
      groupBy(),
      { field: 'genre' },
      { field: 'genre', operation: 'count', limit: 200, flatten_arrays: false },
    ],
    [
      'group_by_date',
      groupByDate(),
      { field: 'releasedAt', interval: 'day', timezone: 'UTC', operation: 'sum', value_field: 'plays' },
      {
        field: 'releasedAt',
        interval: 'day',
        operation: 'sum',
        value_field: 'plays',
        timezone: 'UTC',
        sort: 'key_asc',
        limit: 200,
      },
    ],
    ['distinct', distinct(), { field: 'genre' }, { field: 'genre', limit: 1000 }],
  ])(
    'of %s is checked, shown in the words of the caller, and reads nothing',
    async (_, { records, run }, args, said) => {
      const where = { plays: { $gt: 1 } };
      const answer = await run({ ...args, where, dry_run: true });
      expect(records.asked.map(({ method }) => method)).toEqual(['checkAggregate']);
      const checked = records.asked[0]?.options as { pipeline: object[]; where: unknown };
      expect(checked.where).toEqual(where);
      expect(answer).toEqual({
        dry_run: true,
        class_name: 'Song',
        pipeline: [{ $match: where }, ...checked.pipeline],
        parameters: said,
        hint: expect.stringMatching(/dry_run: false.*aggregate/) as string,
      });
    },
  );

  it.each([[undefined], [null], [{}]])('shows no $match for where %j', async (where) => {
    const answer = await groupBy().run({ field: 'genre', where, dry_run: true });
    expect(answer['pipeline']).toMatchObject([{ $group: {} }, { $limit: 201 }]);
  });
});
