import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClassPolicy } from '#policy';
import { groupBy, stagesOf, withheld } from '../contracts/sample-records.js';

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

  it('tells that a text is the key of absent values too', async () => {
    const { run } = groupBy([
      { _id: 'null', value: 2 },
      { _id: null, value: 1 },
    ]);
    expect(await run({ field: 'genre' })).toMatchObject({
      groups: [{ key: 'null' }, { key: 'null' }],
      note: expect.stringContaining('{"genre":null}') as string,
    });
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
    ['a withheld class: nothing of it', [withheld, null], [withheld, 'null'], undefined],
    ['one withheld among others', ['Artist$a1', withheld, null], ['Artist$a1', withheld, 'null'], undefined],
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

  it('never shows anything of a withheld class, whatever else is in the group', async () => {
    const key = fc.oneof(
      fc.constantFrom<unknown>(null, 'Artist$a1', 'Artist$a2', 'Band$b', 'text', 5),
      fc.constant(withheld),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(key), fc.constantFrom('artist', 'genre', 'tags'), async (keys, field) => {
        const answer = await groupBy(keys.map((_id) => ({ _id, value: 1 }))).run({ field });
        const shown = JSON.stringify(answer).replaceAll(JSON.stringify(withheld), '');
        expect(shown).not.toMatch(/Label|redacted/);
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
