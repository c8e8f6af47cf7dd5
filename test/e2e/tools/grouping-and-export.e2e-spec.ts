import { beforeAll, describe, expect, it } from 'vitest';
import { NOTES_SEED, notesConfig } from '../../fixtures/notes.fixture.js';
import { callTool, type Service, startService } from '../../support/service.js';

let service: Service;
let formulaSafe: Service;
beforeAll(async () => {
  [service, formulaSafe] = await Promise.all([
    startService({ seed: NOTES_SEED, config: notesConfig() }),
    startService({
      seed: NOTES_SEED,
      config: notesConfig({ neutralizeFormulas: true }),
    }),
  ]);
});

const call = (tool: string, args: object) => callTool(service, tool, { class_name: 'Post', ...args });

describe('groups', () => {
  it('count and reduce the rows that exist for the agent', async () => {
    const counted = await call('group_by', { field: 'status', sort: 'value_desc' });
    expect(counted.data).toEqual({
      class_name: 'Post',
      field: 'status',
      operation: 'count',
      group_count: 2,
      groups: [
        { key: 'live', value: 40 },
        { key: 'draft', value: 20 },
      ],
      sort: 'value_desc',
      limit: 200,
    });
    const top = await call('group_by', {
      field: 'status',
      operation: 'max',
      value_field: 'likes',
      sort: 'key_asc',
    });
    expect(top.data['groups']).toEqual([
      { key: 'draft', value: 57 },
      { key: 'live', value: 59 },
    ]);
    const few = await call('group_by', { field: 'likes', limit: 7, where: { likes: { $gte: 10 } } });
    expect(few.data).toMatchObject({ group_count: 7, truncated: true });
  });

  it('follow lists, pointers and other spellings', async () => {
    const tags = await call('group_by', { field: 'tags', flatten_arrays: true, sort: 'key_desc' });
    expect(tags.data).toMatchObject({
      flatten_arrays: true,
      groups: [{ key: 'tea', value: 60 }, { key: 't3', value: 15 }, {}, {}, {}],
    });
    for (const field of ['author', '_p_author']) {
      const authors = await call('group_by', { field });
      expect(authors.data).toMatchObject({
        field,
        groups: [{ key: 'a1', value: 60 }],
        pointer_class: 'Author',
      });
    }
    const dates = await call('group_by', {
      field: 'created_at',
      operation: 'min',
      value_field: 'published_at',
      sort: 'key_asc',
      limit: 1,
    });
    expect(dates.data['groups']).toEqual([
      { key: '2025-01-01T10:00:00.000Z', value: '2025-01-01T10:00:00.000Z' },
    ]);
  });

  it('of nothing are none', async () => {
    expect((await callTool(service, 'group_by', { class_name: 'Empty', field: 'x' })).data).toMatchObject({
      group_count: 0,
      groups: [],
    });
    expect((await callTool(service, 'distinct', { class_name: 'Empty', field: 'x' })).data).toMatchObject({
      count: 0,
      values: [],
    });
  });

  it('take a relation for a constraint', async () => {
    const object = { __type: 'Pointer', className: 'Author', objectId: 'a1' };
    const where = { $relatedTo: { object, key: 'favourites' } };
    const answer = await call('distinct', { field: 'title', sort: 'asc', where });
    expect(answer.data['values']).toEqual(['Post 1', 'Post 2']);
  });

  it('take every constraint a query takes, sub-queries and distances too', async () => {
    const about = { $inQuery: { className: 'Author', where: { name: 'Ann' } } };
    const near = {
      $nearSphere: { __type: 'GeoPoint', latitude: 48, longitude: 11 },
      $maxDistanceInKilometers: 50,
    };
    for (const where of [{ about }, { place: near }, { text: { $regex: '^=HYP' } }, { about: 'a1' }]) {
      const answer = await callTool(service, 'distinct', { class_name: 'Note', field: 'objectId', where });
      expect(answer.data['values']).toEqual(['n1']);
    }
  });
});

describe('periods of time', () => {
  const periods = async (args: object) =>
    (await callTool(service, 'group_by_date', { class_name: 'Note', field: 'writtenAt', ...args })).data[
      'groups'
    ];

  it.each([
    ['year', undefined, ['2024', '2025', 'null']],
    ['month', undefined, ['2024-12', '2025-03', 'null']],
    ['week', undefined, ['2024-W52', '2025-W13', 'null']],
    ['day', undefined, ['2024-12-31', '2025-03-30', 'null']],
    ['hour', undefined, ['2024-12-31 23:00', '2025-03-30 00:00', 'null']],
    ['minute', undefined, ['2024-12-31 23:30', '2025-03-30 00:30', 'null']],
    ['second', undefined, ['2024-12-31 23:30:00', '2025-03-30 00:30:00', 'null']],
    ['year', 'Europe/Berlin', ['2025', 'null']],
    ['minute', 'Europe/Berlin', ['2025-01-01 00:30', '2025-03-30 01:30', 'null']],
    ['day', 'America/New_York', ['2024-12-31', '2025-03-29', 'null']],
    ['minute', '+05:45', ['2025-01-01 05:15', '2025-03-30 06:15', 'null']],
    ['minute', '-0030', ['2024-12-31 23:00', '2025-03-30 00:00', 'null']],
    ['Week', 'Pacific/Kiritimati', ['2025-W00', '2025-W13', 'null']],
  ])('are keyed per %s in %s', async (interval, timezone, keys) => {
    const groups = await periods({ interval, timezone });
    expect((groups as { key: string }[]).map(({ key }) => key)).toEqual(keys);
  });

  it('hold the sum of their rows', async () => {
    const groups = await periods({
      interval: 'year',
      operation: 'sum',
      value_field: 'words',
      timezone: 'Europe/Berlin',
    });
    expect(groups).toEqual([
      { key: '2025', value: 30 },
      { key: 'null', value: 0 },
    ]);
  });

  const note = (tool: string, args: object) => callTool(service, tool, { class_name: 'Note', ...args });

  it('refuse a column that holds no dates', async () => {
    const answer = await note('group_by_date', { field: 'when', interval: 'month' });
    expect(answer.text).toContain("field 'when' is of type String; group_by_date needs a date");
  });

  it('refuse to add up what is no number, as pipelines do', async () => {
    for (const answer of [
      await note('group_by_date', {
        field: 'createdAt',
        interval: 'day',
        operation: 'sum',
        value_field: 'when',
      }),
      await note('group_by', { field: 'createdAt', operation: 'avg', value_field: 'when' }),
      await note('aggregate', { pipeline: [{ $group: { _id: null, n: { $sum: '$when' } } }] }),
    ])
      expect(answer.text).toMatch(/\$(sum|avg) takes numbers, and '\$when' is of type String/);
  });

  it('refuse a time zone that the database does not know', async () => {
    const answer = await call('group_by_date', {
      field: 'createdAt',
      interval: 'day',
      timezone: 'Mars/Phobos',
    });
    expect(answer).toMatchObject({ isError: true, code: 'invalid_argument' });
    expect(answer.text).toMatch(/^Invalid arguments: unknown time zone/);
  });
});

describe('an export', () => {
  it('writes rows under chosen headers, and names what it left out', async () => {
    const answer = await call('export_data', {
      where: { status: 'live' },
      include: ['author'],
      order: '-likes',
      columns: [{ title: 'Title' }, 'author.name', 'published_at'],
      row_cap: 2,
    });
    expect(answer.data).toEqual({
      class_name: 'Post',
      format: 'csv',
      headers: ['Title', 'author.name', 'published_at'],
      row_count: 2,
      output:
        'Title,author.name,published_at\nPost 59,Ann,2025-01-04T10:00:00.000Z\nPost 58,Ann,2025-01-03T10:00:00.000Z\n',
      truncated: true,
      available_rows: 40,
      row_cap: 2,
      hint: expect.stringContaining('row_cap=2 of 40') as string,
      next_call: {
        tool: 'export_data',
        arguments: expect.objectContaining({ row_cap: 2, skip: 2 }) as object,
      },
    });
  });

  it('writes the rows of a pipeline', async () => {
    const pipeline = [{ $group: { _id: '$status', n: { $sum: 1 } } }, { $sort: { _id: 1 } }];
    const answer = await call('export_data', { pipeline, format: 'markdown' });
    expect(answer.data['output']).toBe('| _id | n |\n| --- | --- |\n| draft | 20 |\n| live | 40 |');
  });

  it('writes cells byte for byte, or safe for spreadsheets when the operator says so', async () => {
    const args = { class_name: 'Note', columns: ['text'], order: 'objectId' };
    const asStored = await callTool(service, 'export_data', args);
    expect(asStored.data['output']).toBe('text\n"=HYPERLINK(""http://x"")"\n"a, ""b"""\nplain\n');
    const safe = await callTool(formulaSafe, 'export_data', args);
    expect(safe.data['output']).toBe('text\n"\'=HYPERLINK(""http://x"")"\n"a, ""b"""\nplain\n');
    const queried = await callTool(formulaSafe, 'query_class', {
      class_name: 'Note',
      keys: ['text'],
      order: 'objectId',
      format: 'csv',
    });
    expect(queried.data['output']).toContain("'=HYPERLINK");
  });

  it('leaves cells empty for columns that may not be read', async () => {
    const answer = await call('export_data', {
      columns: ['objectId', 'internalNote', 'internal_note', 'nope'],
      order: 'objectId',
      limit: 1,
    });
    expect(answer.data['output']).toBe(
      'objectId,internalNote,internal_note,nope\ngone,"","",""\n'.replace('gone', 'p00'),
    );
    const user = await callTool(service, 'export_data', {
      class_name: 'User',
      columns: ['username', 'email'],
    });
    expect(user.data['output']).toBe('username,email\nada,""\n');
  });
});
