import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NEWSROOM, NEWSROOM_CONFIG, NEWSROOM_POLICY, SECRET } from './seeds.js';
import { callTool, rpc, type Service, startService, type ToolAnswer } from './service.js';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const date = (iso: string) => ({ __type: 'Date', iso });

/** What the newsroom has none of: lists of pointers, places, dates near midnight, text that a spreadsheet would run. */
const NOTES = {
  schema: {
    className: 'Note',
    fields: {
      text: { type: 'String' },
      links: { type: 'Array' },
      about: { type: 'Pointer', targetClass: 'Author' },
      writtenAt: { type: 'Date' },
      when: { type: 'String' },
      place: { type: 'GeoPoint' },
      words: { type: 'Number' },
    },
  },
  rows: [
    {
      objectId: 'n1',
      text: '=HYPERLINK("http://x")',
      links: [pointer('Author', 'a1'), pointer('Contract', 'c1')],
      about: pointer('Author', 'a1'),
      writtenAt: date('2024-12-31T23:30:00.000Z'),
      when: '2024-12-31',
      place: { __type: 'GeoPoint', latitude: 48, longitude: 11 },
      words: 10,
    },
    {
      objectId: 'n2',
      text: 'a, "b"',
      links: [pointer('Author', 'a1')],
      writtenAt: date('2025-03-30T00:30:00.000Z'),
      when: 'yesterday',
      place: { __type: 'GeoPoint', latitude: -33, longitude: 151 },
      words: 20,
    },
    { objectId: 'n3', about: pointer('Author', 'a2'), text: 'plain' },
  ],
};

const [post, ...others] = NEWSROOM.schemas;
const seed = {
  ...NEWSROOM,
  schemas: [
    { ...post, indexes: { by_status: { status: 1 }, by_tenant: { orgId: 1, status: 1 } } },
    ...others,
    NOTES.schema,
  ],
  objects: { ...NEWSROOM.objects, Note: NOTES.rows },
};

const agent = { tenantId: 'acme', rateLimit: 1_000_000 };
const config = (policy: object = {}) => ({
  ...NEWSROOM_CONFIG,
  agents: {
    analyst: agent,
    liveOnly: { ...agent, filters: { Post: { status: 'live' } } },
    authorsOnly: { ...agent, classes: { only: ['Author'] } },
    noAuthors: { ...agent, classes: { except: ['Author'] } },
    stateless: { rateLimit: 1_000_000 },
    lean: { ...agent, tools: { profile: 'lean' } },
  },
  auth: [
    ...['liveOnly', 'authorsOnly', 'noAuthors', 'stateless', 'lean'].map((name) => ({
      apiKey: `key-of-${name}`,
      agent: name,
    })),
    { anonymous: true, agent: 'analyst' },
  ],
  policy: { ...NEWSROOM_POLICY, ...policy },
});

let service: Service;
let open: Service;
beforeAll(async () => {
  [service, open] = await Promise.all([
    startService({ seed, config: config() }),
    startService({ seed, config: config({ exposeExplain: true, neutralizeFormulas: true }) }),
  ]);
});
afterAll(() => Promise.all([service.stop(), open.stop()]));

const as = (name: string) => ({ 'X-MCP-API-Key': `key-of-${name}` });
const call = (tool: string, args: object, headers = {}) =>
  callTool(service, tool, { class_name: 'Post', ...args }, headers);

const TOOLS: readonly (readonly [tool: string, args: object])[] = [
  ['explain_query', {}],
  ['group_by', { field: 'status' }],
  ['group_by_date', { field: 'createdAt', interval: 'day' }],
  ['distinct', { field: 'status' }],
  ['export_data', {}],
  ['export_data', { pipeline: [{ $limit: 5 }] }],
];
const GROUPING = TOOLS.slice(1, 4);

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

  it('put text in a date column under "null" instead of failing', async () => {
    expect(await periods({ field: 'when', interval: 'month' })).toEqual([{ key: 'null', value: 3 }]);
    expect(await periods({ field: 'when', interval: 'month', timezone: 'UTC' })).toEqual([
      { key: 'null', value: 3 },
    ]);
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
  it('writes rows under chosen headers, and tells what it left out', async () => {
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
    const safe = await callTool(open, 'export_data', args);
    expect(safe.data['output']).toBe('text\n"\'=HYPERLINK(""http://x"")"\n"a, ""b"""\nplain\n');
    const queried = await callTool(open, 'query_class', {
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

describe('an explanation', () => {
  it('tells the stages, and the index that the constraint asked for', async () => {
    const answer = await callTool(service, 'explain_query', {
      class_name: 'Note',
      where: { words: { $gt: 5 } },
    });
    expect(answer.data).toEqual({
      class_name: 'Note',
      constraints: { words: { $gt: 5 } },
      explanation: { stage: 'COLLSCAN', direction: 'forward' },
    });
  });

  it('never repeats what the operator added', async () => {
    for (const where of [undefined, {}, { status: 'live' }, { objectId: 'p01' }]) {
      const answer = await call('explain_query', { where }, as('liveOnly'));
      expect(answer.isError).toBe(false);
      expect(answer.data).toMatchObject({
        constraints: where ?? {},
        explanation: { stage: expect.any(String) as string },
      });
      expect(JSON.stringify(answer.data['explanation'])).not.toMatch(
        /acme|orgId|archived|live|tenant|filter|bounds/i,
      );
    }
  });

  it('is the whole plan when the operator exposes plans, and still without internal columns', async () => {
    const answer = await callTool(open, 'explain_query', { class_name: 'Post', where: { status: 'live' } });
    expect(JSON.stringify(answer.data['explanation'])).toContain('indexBounds');
    expect(answer.wire).not.toMatch(/_rperm|_wperm|_hashed_password/);
  });
});

describe('a dry run', () => {
  it.each(GROUPING)('of %s shows the words of the caller and nothing of the operator', async (tool, args) => {
    const where = {
      likes: { $gt: 3 },
      author: { $inQuery: { className: 'Author', where: { name: 'Ann' } } },
    };
    const answer = await call(tool, { ...args, where, dry_run: true }, as('liveOnly'));
    expect(answer.data).toMatchObject({
      dry_run: true,
      class_name: 'Post',
      parameters: { field: expect.any(String) as string },
    });
    expect(answer.data['pipeline']).toMatchObject([
      { $match: where },
      { $group: {} },
      ...[{}, {}].slice(tool === 'group_by_date' ? 0 : 1),
    ]);
    expect(answer.wire).not.toMatch(/acme|orgId|archived/);
  });

  it('shows a pipeline that aggregate runs to the same groups', async () => {
    const args = { field: 'status', where: { likes: { $gt: 30 } }, sort: 'key_asc' };
    const shown = await call('group_by', { ...args, dry_run: true });
    const ran = await call('aggregate', { pipeline: shown.data['pipeline'] });
    const grouped = await call('group_by', args);
    expect(ran.data['results']).toEqual(
      (grouped.data['groups'] as { key: string; value: number }[]).map(({ key, value }) => ({
        _id: key,
        value,
      })),
    );
  });

  it.each(GROUPING)('of %s is refused wherever the run would be', async (tool, args) => {
    const refusals: [object, object, object][] = [
      [{ class_name: 'Contract' }, {}, { code: 'access_denied', details: { kind: 'hidden_class' } }],
      [{}, as('authorsOnly'), { code: 'access_denied', details: { kind: 'class_filter' } }],
      [{}, as('stateless'), { code: 'access_denied', details: { kind: 'tenant_scope' } }],
      [{ where: { orgId: 'globex' } }, {}, { code: 'access_denied', details: { kind: 'tenant_scope' } }],
      [{ field: 'internalNote' }, {}, { code: 'access_denied', details: { kind: 'field_denied' } }],
      [{ where: { internalNote: 'x' } }, {}, { code: 'access_denied', details: { kind: 'field_denied' } }],
      [{ where: { likes: { $size: 1 } } }, {}, { code: 'invalid_query' }],
      [{ where: { $where: '1' } }, {}, { rpcError: { code: -32602, message: 'Invalid params' } }],
      [{ field: 'authData' }, {}, { rpcError: { code: -32602, message: 'Invalid params' } }],
    ];
    for (const [given, headers, refusal] of refusals) {
      for (const dry_run of [true, false]) {
        expect(await call(tool, { ...args, ...given, dry_run }, headers)).toMatchObject(refusal);
      }
    }
  });
});

describe('what may not be read', () => {
  it.each(TOOLS)('is no class for %s: hidden, filtered or scoped without a tenant', async (tool, args) => {
    const hidden = await call(tool, { class_name: 'Contract', ...args });
    expect(hidden).toMatchObject({ isError: true, code: 'access_denied', details: { kind: 'hidden_class' } });
    const filtered = await call(tool, args, as('authorsOnly'));
    expect(filtered).toMatchObject({
      isError: true,
      code: 'access_denied',
      details: { kind: 'class_filter' },
    });
    const scoped = await call(tool, args, as('stateless'));
    expect(scoped).toMatchObject({ isError: true, code: 'access_denied', details: { kind: 'tenant_scope' } });
  });

  it.each(TOOLS)('is spoken of by the class gate of %s before any argument', async (tool) => {
    const answer = await call(tool, {
      class_name: 'Contract',
      field: 5,
      limit: 'x',
      columns: 7,
      interval: {},
      format: 1,
    });
    expect(answer).toMatchObject({ code: 'access_denied', details: { kind: 'hidden_class' } });
  });

  it.each(GROUPING)('is no field for %s, and the refusal says which are', async (tool, args) => {
    for (const [given, refused, kind] of [
      [{ field: 'internalNote' }, 'internalNote', 'field_denied'],
      [{ field: 'internal_note' }, 'internalNote', 'field_denied'],
      [{ field: '_p_secretary' }, '_p_secretary', 'storage_form_field_ref'],
      [{ where: { internalNote: SECRET } }, 'internalNote', 'field_denied'],
      ...(tool === 'distinct'
        ? []
        : ([[{ operation: 'max', value_field: 'internalNote' }, 'internalNote', 'field_denied']] as const)),
    ] as const) {
      const answer = await call(tool, { ...args, ...given });
      expect(answer).toMatchObject({
        isError: true,
        code: 'access_denied',
        details: { kind, denied_field: refused },
      });
      expect(answer.details?.['allowed_fields']).toContain('title');
    }
  });

  it('is no class of a pointer either: its groups are counted and not named', async () => {
    const grouped = await call('group_by', { field: 'contract' });
    expect(grouped.data['groups']).toEqual([{ key: 'null', value: 60 }]);
    expect(grouped.data).not.toHaveProperty('pointer_class');
    const values = await call('distinct', { field: 'contract' });
    expect(values.data).toMatchObject({ count: 1, values: [null] });
    const filtered = await call('group_by', { field: 'author' }, as('noAuthors'));
    expect(filtered.data['groups']).toEqual([{ key: 'null', value: 60 }]);
    const mixed = await callTool(service, 'group_by', {
      class_name: 'Note',
      field: 'links',
      flatten_arrays: true,
      sort: 'value_desc',
    });
    expect(mixed.data['groups']).toEqual([
      { key: 'Author$a1', value: 2 },
      { key: 'null', value: 1 },
    ]);
    for (const answer of [grouped, values, mixed]) expect(answer.wire).not.toMatch(/Contract|c1"/);
    expect(filtered.wire).not.toMatch(/Author|a1"/);
  });

  it('is no row: filters of tenant, agent and class hold on every path, whatever is asked', async () => {
    const optOut = { apply_canonical_filter: false, tenant_id: 'globex', where: { likes: { $gte: 50 } } };
    const likes = Array.from({ length: 10 }, (_, index) => 50 + index);
    expect((await call('distinct', { field: 'likes', sort: 'asc', ...optOut })).data['values']).toEqual(
      likes,
    );
    const live = likes.filter((count) => count % 3 !== 0);
    expect(
      (await call('distinct', { field: 'likes', sort: 'asc', ...optOut }, as('liveOnly'))).data['values'],
    ).toEqual(live);
    const exported = await call(
      'export_data',
      { columns: ['likes'], order: 'likes', ...optOut },
      as('liveOnly'),
    );
    expect(exported.data['output']).toBe(`likes\n${live.join('\n')}\n`);
    const piped = await call(
      'export_data',
      { pipeline: [{ $count: 'n' }], apply_canonical_filter: false },
      as('liveOnly'),
    );
    expect(piped.data['output']).toBe('n\n40\n');
    const dated = await call(
      'group_by_date',
      { field: 'createdAt', interval: 'year', ...optOut },
      as('liveOnly'),
    );
    expect(dated.data['groups']).toEqual([{ key: '2025', value: live.length }]);
  });

  it.each<[string, () => Promise<ToolAnswer>]>([
    ['an export of everything', () => call('export_data', { limit: 1000 })],
    ['an export with every key', () => call('export_data', { keys: ['internalNote', 'title'] })],
    [
      'an export with an include',
      () => call('export_data', { include: ['author'], columns: ['author.ssn', 'author', 'contract'] }),
    ],
    [
      'an export of a hidden include',
      () => call('export_data', { include: ['contract'], columns: ['contract.clause'] }),
    ],
    ['an export in an order', () => call('export_data', { order: 'internalNote' })],
    ['an export of a pipeline', () => call('export_data', { pipeline: [{ $project: { title: 0 } }] })],
    [
      'an export of $$ROOT',
      () => call('export_data', { pipeline: [{ $group: { _id: null, all: { $push: '$$ROOT' } } }] }),
    ],
    [
      'an export of a join',
      () =>
        call('export_data', {
          pipeline: [
            { $lookup: { from: 'Author', localField: 'author', foreignField: 'objectId', as: 'a' } },
          ],
        }),
    ],
    ['an export of a union', () => call('export_data', { pipeline: [{ $unionWith: 'Contract' }] })],
    ['an export of users', () => callTool(service, 'export_data', { class_name: '_User' })],
    ['an export of sessions', () => callTool(service, 'export_data', { class_name: '_Session' })],
    [
      'an export of an internal column',
      () => callTool(service, 'export_data', { class_name: '_User', columns: ['_hashed_password'] }),
    ],
    [
      'groups of passwords',
      () => callTool(service, 'group_by', { class_name: '_User', field: '_hashed_password' }),
    ],
    ['groups of tokens', () => callTool(service, 'group_by', { class_name: '_User', field: 'sessionToken' })],
    [
      'greatest hidden values',
      () => call('group_by', { field: 'status', operation: 'max', value_field: 'internalNote' }),
    ],
    ['titles', () => call('distinct', { field: 'title', limit: 5000 })],
    [
      'a filter on a hidden value',
      () => call('group_by', { field: 'status', where: { internalNote: { $regex: '^S' } } }),
    ],
    ['a plan for a hidden value', () => call('explain_query', { where: { internalNote: { $regex: '^S' } } })],
    [
      'a plan for a hidden class',
      () =>
        call('explain_query', { where: { contract: { $inQuery: { className: 'Contract', where: {} } } } }),
    ],
  ])('never shows in %s', async (_, probe) => {
    const answer = await probe();
    expect(answer.wire).not.toContain(SECRET);
    expect(answer.wire).not.toMatch(/globex|foreign"|_rperm"|\$2[aby]\$/);
  });
});

describe('listing and calling agree', () => {
  it('that these tools are there', async () => {
    const { body } = await rpc(service, 'tools/list');
    const listed = (body['result'] as { tools: { name: string }[] }).tools.map(({ name }) => name);
    for (const [tool, args] of TOOLS) {
      expect(listed).toContain(tool);
      expect((await call(tool, args)).isError).toBe(false);
    }
  });

  it('that a lean agent has none of them', async () => {
    const { text } = await rpc(service, 'tools/list', {}, as('lean'));
    for (const [tool, args] of TOOLS) {
      expect(text).not.toContain(`"${tool}"`);
      expect(await call(tool, args, as('lean'))).toMatchObject({ isError: true, code: 'tool_filtered' });
    }
  });
});
