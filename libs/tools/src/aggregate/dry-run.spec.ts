import { describe, expect, it } from 'vitest';
import { distinct, groupBy, groupByDate, type Run, type SampleRecords } from '../contracts/sample-records.js';

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
