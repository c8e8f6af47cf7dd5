import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ParseRow } from '#data';
import type { ClassPolicy } from '#policy';
import {
  callOf,
  QUIET,
  runTool,
  sampleClass,
  SampleExportStore,
  SampleRecords,
  sampleRows,
  switches,
} from '../contracts/sample-records.js';
import { ToolContent, type ToolSwitches } from '../tool.js';
import { ExportData } from './export-data.js';

function setUp(rows: readonly ParseRow[], process: ToolSwitches = QUIET, policy: Partial<ClassPolicy> = {}) {
  const records = new SampleRecords(rows, [
    sampleClass(
      'Song',
      {
        title: { type: 'String' },
        playCount: { type: 'Number' },
        artist: { type: 'Pointer', targetClass: 'Artist' },
      },
      policy,
    ),
  ]);
  const desk = new SampleExportStore();
  const tool = new ExportData(desk);
  return {
    records,
    desk,
    run: async (args: object): Promise<Record<string, unknown>> => {
      const call = Object.assign(callOf(tool, records), { switches: process });
      const answer = await runTool(tool, 'export', { class_name: 'Song', ...args }, call);
      return answer instanceof ToolContent ? { blocks: answer.blocks, data: answer.data } : answer;
    },
  };
}

const SONGS = [
  { objectId: 's1', title: 'A', artist: { objectId: 'a1', name: 'Bob' }, ACL: {} },
  { objectId: 's2', title: 'B', artist: { objectId: 'a2', name: 'x, y' }, ACL: {} },
];

describe('export_data', () => {
  it('writes the chosen columns under their headers', async () => {
    const { run } = setUp(SONGS);
    expect(await run({ columns: [{ title: 'Title' }, 'artist.name'] })).toEqual({
      class_name: 'Song',
      format: 'csv',
      headers: ['Title', 'artist.name'],
      row_count: 2,
      output: 'Title,artist.name\nA,Bob\nB,"x, y"\n',
    });
  });

  it('reads only what its columns show, and what Pointers lead to, whatever the keys are', async () => {
    const { run, records } = setUp(SONGS);
    await run({ columns: [{ 'artist.name': 'Who' }, 'title'] });
    await run({ columns: ['title'], keys: ['title', 'artist'] });
    expect(records.asked.map(({ options }) => (options as { keys?: unknown }).keys)).toEqual([
      ['artist.name', 'title'],
      ['title'],
    ]);
  });

  it.each([
    ['csv', 'objectId,title,artist\ns1,A,'],
    ['markdown', '| objectId | title | artist |'],
    ['TABLE', '| objectId | title | artist'],
  ])('takes the columns of the first row for %s', async (format, start) => {
    const answer = await setUp(SONGS).run({ format });
    expect(answer).toMatchObject({ format: format.toLowerCase(), headers: ['objectId', 'title', 'artist'] });
    expect(answer['output']).toContain(start);
    expect(answer['output']).not.toContain('ACL');
  });

  it.each([
    ['no rows and no columns', [], {}, ['objectId'], 'objectId\n'],
    ['no rows', [], { columns: ['title'] }, ['title'], 'title\n'],
    [
      'a path that is not there',
      SONGS.slice(1),
      { columns: ['title', 'nope.x'] },
      ['title', 'nope.x'],
      'title,nope.x\nB,""\n',
    ],
    [
      'a column in snake case',
      [{ playCount: 3 }],
      { columns: ['play_count'] },
      ['play_count'],
      'play_count\n3\n',
    ],
  ])('answers %s', async (_, rows, args, headers, output) => {
    expect(await setUp(rows).run(args)).toMatchObject({ headers, output });
  });

  it('asks as a query does, and never with an opt-out', async () => {
    const { records, run } = setUp(SONGS);
    await run({
      where: { a: 1 },
      keys: ['title'],
      include: ['artist'],
      order: '-title',
      limit: 50_000,
      skip: 2,
      apply_canonical_filter: false,
    });
    expect(records.asked).toEqual([
      {
        method: 'page',
        className: 'Song',
        options: {
          where: { a: 1 },
          keys: ['title'],
          include: ['artist'],
          order: '-title',
          limit: 1000,
          skip: 2,
          ceiling: 10_000,
          tellsMore: true,
        },
      },
    ]);
  });

  it.each([
    [{}, 100, 100],
    [{ row_cap: 5000 }, 1500, null],
    [{ row_cap: 1200 }, 1200, 1200],
    [{ limit: 1500, row_cap: 1500 }, 1500, null],
    [{ limit: 1500 }, 1000, 1000],
    [{ limit: 5, skip: 3 }, 5, 8],
    [{ limit: 5, row_cap: 50 }, 5, 5],
    [{ row_cap: 2 }, 2, 2],
  ])('writes as many of 1,500 rows as %j says, and says when there are more', async (args, count, next) => {
    const many = Array.from({ length: 1500 }, (_, index) => ({ objectId: `r${index}` }));
    const answer = (await setUp(many).run(args)) as Record<string, unknown>;
    expect(answer['row_count']).toBe(count);
    expect(answer['output']).toContain(`r${(args as { skip?: number }).skip ?? 0}\n`);
    if (next === null) {
      for (const member of ['truncated', 'hint', 'next_call']) expect(answer).not.toHaveProperty(member);
    } else {
      const { hint, next_call: call } = answer as { hint: string; next_call: object };
      expect(answer['truncated']).toBe(true);
      expect(hint).toMatch(/row_cap|more match/);
      expect(call).toEqual({ tool: 'export_data', arguments: { class_name: 'Song', ...args, skip: next } });
    }
  });

  it('writes the columns of a pipeline under the names that callers write', async () => {
    const rows = [
      { _id: 's1', _created_at: 'then', _updated_at: 'now', _p_to: 'Team$t1', _p_by: '_User$u1', by: 5 },
      { _id: 's2', _created_at: 'then', _updated_at: 'now', _p_to: 'Club$c1' },
    ];
    const pipeline = [{ $limit: 2 }];
    expect(await setUp(rows.slice(0, 1)).run({ pipeline, columns: ['objectId', 'to'] })).toMatchObject({
      output: 'objectId,to\ns1,t1\n',
    });
    expect(await setUp(rows).run({ pipeline })).toMatchObject({
      output:
        'objectId,createdAt,updatedAt,to,_p_by,by\ns1,then,now,Team$t1,_User$u1,5\ns2,then,now,Club$c1,"",""\n',
    });
  });

  it('runs a pipeline instead of a query, bounded, with the names it gave', async () => {
    const { records, run } = setUp([{ _id: 'rock', playCount: 2 }]);
    const pipeline = [{ $group: { _id: '$genre' } }];
    expect(
      await run({ pipeline, where: { ignored: 1 }, limit: 'ignored', columns: ['playCount', 'play_count'] }),
    ).toMatchObject({
      output: 'playCount,play_count\n2,""\n',
    });
    expect(records.asked).toEqual([
      { method: 'aggregate', className: 'Song', options: { pipeline, atMost: 10_001 } },
    ]);
    expect(await run({ pipeline })).toMatchObject({
      headers: ['_id', 'playCount'],
      output: '_id,playCount\nrock,2\n',
    });
  });

  it('says what it left out', async () => {
    const { run } = setUp(sampleRows(7));
    expect(await run({ row_cap: 2, columns: ['objectId'] })).toMatchObject({
      row_count: 2,
      output: 'objectId\nr0\nr1\n',
      truncated: true,
      available_rows: 7,
      row_cap: 2,
      hint: expect.stringContaining('row_cap=2 of 7') as string,
    });
    const whole = await run({ row_cap: 99_999 });
    for (const member of ['truncated', 'available_rows', 'row_cap', 'hint'])
      expect(whole).not.toHaveProperty(member);
  });

  it.each([
    [false, '=1+1\n'],
    [true, "'=1+1\n"],
  ])('writes formulas as data or as text (neutralizeFormulas: %s)', async (neutralizeFormulas, output) => {
    const { run } = setUp([{ title: '=1+1' }], switches({ neutralizeFormulas }));
    expect(await run({ columns: ['title'] })).toMatchObject({ output: `title\n${output}` });
  });

  it.each<[object, RegExp]>([
    [{ format: 'json' }, /format must be one of csv, markdown, table/],
    [{ row_cap: 0 }, /^Invalid arguments: row_cap must be positive$/],
    [{ row_cap: -5 }, /row_cap must be positive/],
    [{ row_cap: '5' }, /row_cap must be an integer/],
    [{ limit: 0 }, /limit must be at least 1/],
    [{ skip: -1 }, /skip must be at least 0/],
    [{ columns: 'title' }, /columns must be a list/],
    [{ columns: {} }, /columns must be a list/],
    [{ columns: Array.from({ length: 201 }, () => 'title') }, /at most 200/],
    [{ columns: [5] }, /every entry is a field name/],
    [{ columns: [null] }, /every entry is a field name/],
    [{ columns: [['title']] }, /every entry is a field name/],
    [{ columns: [{}] }, /exactly one/],
    [{ columns: [{ a: 'A', b: 'B' }] }, /exactly one/],
    [{ columns: [{ a: 5 }] }, /exactly one/],
    [{ columns: [''] }, /underscore-prefixed/],
    [{ columns: ['a,b'] }, /underscore-prefixed/],
    [{ columns: ['a..b'] }, /underscore-prefixed/],
  ])('refuses %j before anything is read', async (args, message) => {
    const { records, run } = setUp(SONGS);
    await expect(run(args)).rejects.toMatchObject({
      refusal: { code: 'invalid_argument', message: expect.stringMatching(message) as string },
    });
    expect(records.asked).toEqual([]);
  });

  it('answers delivery resource with a link, reading one row to find out whether it may', async () => {
    const { records, desk, run } = setUp(SONGS);
    const where = { title: 'A' };
    const answer = await run({ delivery: 'resource', where, keys: ['title'], columns: ['title'] });
    expect(records.asked).toEqual([
      {
        method: 'page',
        className: 'Song',
        options: { where, keys: ['title'], include: undefined, after: '', limit: 1 },
      },
    ]);
    const columns = [{ header: 'title', path: 'title' }];
    expect(desk.orders).toEqual([
      { className: 'Song', format: 'csv', where, keys: ['title'], columns, limit: null },
    ]);
    expect(answer).toMatchObject({
      blocks: [{ type: 'text' }, { type: 'resource_link', uri: 'export://abc', name: 'Song.csv' }],
      data: { uri: 'export://abc', path: '/exports/abc', max_rows: 5000 },
    });
    expect(JSON.stringify(answer)).not.toContain('Bob');
  });

  it.each<[object, RegExp]>([
    [{ order: 'title' }, /order cannot be used with delivery resource/],
    [{ skip: 1 }, /skip cannot be used/],
    [{ pipeline: [] }, /pipeline cannot be used/],
    [{ row_cap: 5 }, /row_cap cannot be used/],
    [{ limit: 5001 }, /limit must be between 1 and 5000/],
    [{ limit: 0 }, /limit must be between 1 and 5000/],
    [{ format: 'table' }, /format must be one of csv, ndjson, markdown/],
    [{ columns: ['authData'] }, /cannot be exported/],
    [{ format: 'ndjson', columns: ['title', { year: 'title' }] }, /two columns are called 'title'/],
    [{ format: 'ndjson', columns: ['title', 'title'] }, /two columns are called 'title'/],
  ])('promises nothing for %j', async (args, message) => {
    const { records, desk, run } = setUp(SONGS);
    await expect(run({ delivery: 'resource', ...args })).rejects.toMatchObject({
      refusal: { code: 'invalid_argument', message: expect.stringMatching(message) as string },
    });
    expect(records.asked).toEqual([]);
    expect(desk.orders).toEqual([]);
  });

  it('promises nothing when the rows are refused', async () => {
    const { records, desk, run } = setUp(SONGS);
    records.find = () => Promise.reject(new Error('refused'));
    await expect(run({ delivery: 'resource' })).rejects.toThrow('refused');
    expect(desk.orders).toEqual([]);
  });

  const INTERNAL = fc.constantFrom(
    '_hashed_password',
    '_rperm',
    '_wperm',
    '_session_token',
    'sessionToken',
    'authData',
    'ACL',
    'bcryptPassword',
    '_auth_data_x',
  );

  it('never takes an internal column, as path, segment or pair', async () => {
    const name = fc.constantFrom('title', 'user', 'a1');
    const path = fc
      .tuple(fc.array(name, { maxLength: 2 }), INTERNAL, fc.array(name, { maxLength: 2 }))
      .map(([before, internal, after]) => [...before, internal, ...after].join('.'));
    await fc.assert(
      fc.asyncProperty(path, fc.boolean(), async (column, paired) => {
        const { records, run } = setUp(SONGS);
        await expect(run({ columns: [paired ? { [column]: 'x' } : column] })).rejects.toMatchObject({
          refusal: { code: 'invalid_argument' },
        });
        expect(records.asked).toEqual([]);
      }),
    );
  });
});
