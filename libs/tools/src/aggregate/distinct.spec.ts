import { describe, expect, it } from 'vitest';
import { distinct, stagesOf, withheld } from '../contracts/sample-records.js';

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
    const hidden = await distinct([{ _id: withheld }, { _id: null }]).run({ field: 'artist' });
    expect(hidden).toMatchObject({ count: 2, values: [withheld, null] });
    expect(hidden).not.toHaveProperty('pointer_class');
  });

  it.each([[0], [5001], ['9']])('refuses limit %j', async (limit) => {
    await expect(distinct().run({ field: 'genre', limit })).rejects.toMatchObject({
      refusal: { message: 'Invalid arguments: limit must be between 1 and 5000' },
    });
  });
});
