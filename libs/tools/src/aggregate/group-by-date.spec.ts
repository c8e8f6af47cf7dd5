import { describe, expect, it } from 'vitest';
import { groupByDate, stagesOf } from '../contracts/sample-records.js';
import { isRepeated } from './repeated-hours.js';

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

  const autumn = (hour: number, offset: string, more = {}) => ({
    _id: { year: 2025, month: 10, day: 26, hour, ...more, offset },
    value: 1,
  });
  const keysOf = async (rows: readonly object[], args: object) => {
    const { groups } = await groupByDate(rows as never).run({
      field: 'releasedAt',
      interval: 'hour',
      ...args,
    });
    return (groups as { key: string }[]).map(({ key }) => key);
  };

  it.each<[string, object[], object, string[]]>([
    [
      'Europe/Berlin',
      [autumn(1, '+0200'), autumn(2, '+0100'), autumn(2, '+0200'), autumn(3, '+0100')],
      {},
      ['2025-10-26 01:00', '2025-10-26 02:00+02:00', '2025-10-26 02:00+01:00', '2025-10-26 03:00'],
    ],
    ['Europe/Berlin', [autumn(2, '+0100')], {}, ['2025-10-26 02:00+01:00']],
    [
      'Europe/Berlin',
      [autumn(2, '+0200', { minute: 59 }), autumn(3, '+0100', { minute: 0 })],
      { interval: 'minute' },
      ['2025-10-26 02:59+02:00', '2025-10-26 03:00'],
    ],
    [
      'Australia/Lord_Howe',
      [
        { _id: { year: 2025, month: 4, day: 6, hour: 1, offset: '+1100' }, value: 1 },
        { _id: { year: 2025, month: 4, day: 6, hour: 1, offset: '+1030' }, value: 1 },
      ],
      {},
      ['2025-04-06 01:00+11:00', '2025-04-06 01:00+10:30'],
    ],
  ])(
    'marks keys of an hour that a day in %s has twice, and no others',
    async (timezone, rows, args, keys) => {
      expect(await keysOf(rows, { timezone, ...args })).toEqual(keys);
      expect(await keysOf(rows, { timezone, ...args, sort: 'key_desc' })).toEqual(keys.toReversed());
    },
  );

  it('never gives one key to two hours of a year, whatever the zone', () => {
    const zones = [
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'America/St_Johns',
      'Asia/Tokyo',
    ];
    for (const timezone of zones) {
      const format = new Intl.DateTimeFormat('sv-SE', {
        timeZone: timezone,
        dateStyle: 'short',
        timeStyle: 'medium',
      });
      const offsets = new Intl.DateTimeFormat('en-US', { timeZone: timezone, timeZoneName: 'longOffset' });
      const seen = new Set<string>();
      for (let at = Date.UTC(2025, 0); at < Date.UTC(2026, 0); at += 1_800_000) {
        const key = format.format(at).slice(0, 16);
        const offset = offsets.format(at).split('GMT')[1] || '+00:00';
        const shown = isRepeated(key, 'minute', { offset, timezone }) ? key + offset : key;
        expect(seen.has(shown), `${timezone} ${shown}`).toBe(false);
        seen.add(shown);
      }
    }
  });

  it('says what the week 0 of a year is', async () => {
    const week = (number: number) => groupByDate([{ _id: { year: 2024, week: number }, value: 1 }]);
    const args = { field: 'releasedAt', interval: 'week' };
    expect((await week(0).run(args))['note']).toMatch(/W00 has the days before the first Sunday/);
    expect(await week(1).run(args)).not.toHaveProperty('note');
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
    [{ field: 'releasedAt', interval: 'day', timezone: '+25:00' }, /timezone must be/],
    [{ field: 'releasedAt', interval: 'day', timezone: '+02:60' }, /timezone must be/],
    [{ field: 'releasedAt', interval: 'day', timezone: '-14:01' }, /timezone must be/],
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

  it('shows no type of a field that may not be read', async () => {
    const { records, run } = groupByDate([], { fields: ['genre'] });
    await run({ field: 'tags', interval: 'day' });
    expect(records.asked.map(({ method }) => method)).toEqual(['aggregate']);
  });
});
