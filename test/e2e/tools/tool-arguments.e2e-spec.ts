import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callModern } from '../../support/modern-call.js';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, rpc, type Service, startService, type ToolAnswer } from '../../support/service.js';

const to = (objectId: string) => ({ __type: 'Pointer', className: 'Team', objectId });
const MEGABYTE = 1024 * 1024;
const heavy = (objectId: string, body: number, more: object = {}) => ({
  objectId,
  title: `Heavy ${objectId}`,
  body: objectId.slice(-1).repeat(body),
  ...more,
});

const SEED = {
  schemas: [
    { className: 'Item', fields: { n: { type: 'Number' }, to: { type: 'Pointer', targetClass: 'Team' } } },
    { className: 'Place', fields: { at: { type: 'GeoPoint' } } },
    { className: 'Team', fields: { name: { type: 'String' } } },
    {
      className: 'Heavy',
      fields: { title: { type: 'String' }, body: { type: 'String' }, copy: { type: 'String' } },
    },
    {
      className: 'Narrow',
      fields: {
        title: { type: 'String' },
        secret: { type: 'String' },
        blob: { type: 'Object' },
        to: { type: 'Pointer', targetClass: 'Team' },
        archived: { type: 'Boolean' },
      },
    },
  ],
  objects: {
    Place: [
      { objectId: 'p1', at: { __type: 'GeoPoint', latitude: 40, longitude: 20 } },
      { objectId: 'p2', at: { __type: 'GeoPoint', latitude: -90, longitude: 180 } },
    ],
    Team: [{ objectId: 't1', name: 'Red' }],
    Item: Array.from({ length: 1500 }, (_, n) => ({
      objectId: `i${String(n).padStart(4, '0')}`,
      n,
      to: to('t1'),
    })),
    Heavy: [
      ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((id) => heavy(id, MEGABYTE)),
      heavy('g1', 5 * MEGABYTE, { copy: 'c'.repeat(5 * MEGABYTE) }),
    ],
    Narrow: [
      { objectId: 'n1', title: 'one', secret: 'S3CRET-x', blob: { a: 1, b: { c: 2 } }, to: to('t1') },
      { objectId: 'n2', title: 'two', secret: 'S3CRET-y', blob: { a: 2 }, archived: true },
    ],
  },
};

const CONFIG = {
  agents: { analyst: { permissions: 'readonly', rateLimit: 1_000_000 } },
  auth: [{ anonymous: true, agent: 'analyst' }],
  policy: {
    unlistedClasses: 'allow',
    classes: {
      Narrow: { fields: ['title', 'blob', 'to'], canonicalFilter: { archived: { $ne: true } } },
      _Role: { hidden: true },
    },
  },
};

const { Heavy: _heavy, ...light } = SEED.objects;

/** The route of every row: the database itself, or a Parse Server alone. */
const ROUTES = ['MongoDB', 'Parse Server'] as const;
let parse: ParseUnderTest;
let services: Record<(typeof ROUTES)[number], Service>;
let service: Service;
let tolerant: Service;
beforeAll(async () => {
  parse = await ParseUnderTest.start();
  await parse.fill({ ...SEED, objects: light });
  const [direct, lone, lenient] = await Promise.all([
    startService({ seed: SEED, config: CONFIG }),
    startService({ config: { ...CONFIG, parse: parse.config } }),
    startService({
      seed: SEED,
      config: { ...CONFIG, policy: { ...CONFIG.policy, unknownArguments: 'ignore' } },
    }),
  ]);
  services = { MongoDB: direct, 'Parse Server': lone };
  service = direct;
  tolerant = lenient;
}, 120_000);
afterAll(async () => {
  await Promise.all([...Object.values(services ?? {}), tolerant].map((started) => started?.stop()));
  await parse?.stop();
});

const call = (tool: string, args: object) => callTool(service, tool, args);
/** Calls of a tool by a route. */
const by = (route: (typeof ROUTES)[number]) => (tool: string, args: object) =>
  callTool(services[route], tool, args);
const shownOf = ({ isError, code, text, rpcError }: ToolAnswer) => ({ isError, code, text, rpcError });

describe.each(ROUTES)('an argument that a built-in tool does not take, by %s', (route) => {
  it.each<[string, object, string]>([
    [
      'count_objects',
      { class_name: 'Item', filter: { n: 1 } },
      "count_objects does not take 'filter'. Did you mean 'where'? It takes: class_name, where",
    ],
    [
      'query_class',
      { class_name: 'Item', were: { n: 1 } },
      "query_class does not take 'were'. Did you mean 'where'?",
    ],
    ['query_class', { class_name: 'Item', limt: 1 }, "Did you mean 'limit'?"],
    [
      'get_object',
      { className: 'Item', object_id: 'i0000' },
      "get_object does not take 'className'. Did you mean 'class_name'?",
    ],
    ['aggregate', { class_name: 'Item', pipline: [] }, "Did you mean 'pipeline'?"],
    ['group_by', { class_name: 'Item', field: 'n', apply_canonical_filter: false }, 'group_by does not take'],
    ['list_tools', { categories: 'query' }, "Did you mean 'category'?"],
    ['get_schema', { class_name: 'Item', name: 'x' }, "get_schema does not take 'name'."],
  ])('is refused by %s: %j', async (tool, args, text) => {
    const answer = await by(route)(tool, args);
    expect(shownOf(answer)).toMatchObject({ isError: true, code: 'invalid_argument' });
    expect(answer.text).toContain(text);
    const modern = await callModern(services[route], tool, args);
    expect(modern.toolError?.code).toBe('invalid_argument');
  });
});

describe('an argument that no built-in tool takes', () => {
  it('is passed over where the operator says so, and an identity everywhere', async () => {
    const answer = await callTool(tolerant, 'count_objects', { class_name: 'Item', filter: { n: 1 } });
    expect(answer.data['count']).toBe(1500);
    for (const name of ['session_token', 'useMasterKey', 'ACL-User', 'tenantId'])
      expect((await call('count_objects', { class_name: 'Item', [name]: 'x' })).data['count']).toBe(1500);
  });
});

describe('a tool or class that does not exist', () => {
  it('is said to be unknown, with names that are near and where to look', async () => {
    const tool = await call('count_object', { class_name: 'Item' });
    expect(tool.text).toContain("There is no tool of that name. Did you mean 'count_objects'? list_tools");
    expect((await call('nope', {})).text).not.toContain('Did you mean');
    const near = await call('query_class', { class_name: 'Itme' });
    expect(near.text).toContain('Did you mean: Item?');
    const far = await call('query_class', { class_name: 'Nope' });
    expect(far.text).toContain("Could not fetch schema for 'Nope'.");
    expect(far.text).not.toContain('Did you mean');
    expect(far.text).toContain('get_all_schemas');
  });

  it.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    'is answered as %s says',
    async (version) => {
      const headers = { 'MCP-Protocol-Version': version };
      const { body } = await rpc(service, 'tools/call', { name: 'nope', arguments: {} }, headers);
      if (version === '2025-11-25')
        expect(body).toMatchObject({ error: { code: -32602, message: 'Unknown tool: nope' } });
      else
        expect(body).toMatchObject({
          result: { isError: true, _meta: { 'parse.error_code': 'permission_denied' } },
        });
    },
  );
});

describe('a slip in a pipeline', () => {
  it.each<[unknown, string]>([
    ['x', 'pipeline is a list of stages'],
    [[], 'pipeline is empty'],
    [[5], 'stage 0: a stage is an object'],
    [[{ $limit: 1, $skip: 1 }], 'a stage has one key'],
    [[{ $lookup: {} }], 'from is the name of a class'],
    [[{ $foo: 1 }], "'$foo' is no stage that can be used"],
    [[{ $macth: {} }], "Did you mean '$match'?"],
    [Array.from({ length: 21 }, () => ({ $limit: 1 })), 'pipeline has 21 stages; at most 20'],
  ])('is explained: %j', async (pipeline, text) => {
    for (const tool of ['aggregate', 'export_data']) {
      const answer = await call(tool, { class_name: 'Item', pipeline });
      expect(shownOf(answer)).toMatchObject({ isError: true, code: 'invalid_argument' });
      expect(answer.text).toContain(text);
    }
  });

  it.each([
    { $out: 'x' },
    { $match: { $where: '1' } },
    { $search: {} },
    { $currentOp: {} },
    { $match: { _rperm: 1 } },
  ])('is not reported beside %j', async (stage) => {
    for (const pipeline of [[stage], [stage, 'x'], [{ $nope: 1 }, stage], [{ $limit: 'x' }, stage]])
      expect((await call('aggregate', { class_name: 'Item', pipeline })).rpcError).toEqual({
        code: -32602,
        message: 'Invalid params',
      });
  });

  it('that is a storage column is corrected by what the refusal suggests', async () => {
    const places: [string, (name: string) => object][] = [
      ['query_class', (name) => ({ where: { [name]: { $exists: true } } })],
      ['aggregate', (name) => ({ pipeline: [{ $match: { [name]: { $exists: true } } }] })],
      ['aggregate', (name) => ({ pipeline: [{ $sort: { [name]: 1 } }] })],
      ['aggregate', (name) => ({ pipeline: [{ $project: { [name]: 1 } }] })],
      [
        'aggregate',
        (name) => ({ pipeline: [{ $group: { _id: name.startsWith('_') ? `$${name}` : name } }] }),
      ],
    ];
    for (const [tool, args] of places) {
      const refused = await call(tool, { class_name: 'Narrow', ...args('_p_to') });
      const rewrite = String(refused.details?.['suggested_rewrite']);
      const followed = await call(tool, { class_name: 'Narrow', ...args(rewrite) });
      expect([refused.code, followed.isError]).toEqual(['access_denied', false]);
    }
  });
});

describe('after documents were replaced', () => {
  const titles = async (...pipeline: object[]) => {
    const answer = await call('aggregate', { class_name: 'Narrow', pipeline });
    return answer.isError ? answer.text : answer.data['results'];
  };

  it('their members can be used', async () => {
    expect(await titles({ $replaceRoot: { newRoot: { x: '$title' } } }, { $match: { x: 'one' } })).toEqual([
      { x: 'one' },
    ]);
    expect(
      await titles({ $replaceWith: '$blob' }, { $match: { a: 1 } }, { $project: { c: '$b.c' } }),
    ).toEqual([{ c: 2 }]);
    expect(await titles({ $replaceWith: '$$ROOT' }, { $project: { title: 1, _id: 0 } })).toEqual([
      { title: 'one' },
    ]);
  });

  it('no more of them than before', async () => {
    for (const newRoot of [
      '$$ROOT',
      { $mergeObjects: ['$$ROOT', { a: 1 }] },
      { $arrayToObject: { $objectToArray: '$$ROOT' } },
    ]) {
      const answer = await call('aggregate', {
        class_name: 'Narrow',
        pipeline: [{ $replaceRoot: { newRoot } }, { $project: { x: '$secret', y: '$title' } }],
      });
      expect(answer.wire).not.toContain('S3CRET');
    }
  });
});

describe('what is too large', () => {
  /** With the bytes that are sent. */
  const CALLS: [string, Record<string, unknown>, number][] = [
    ['get_object', { class_name: 'Heavy', object_id: 'g1' }, 10_486_023],
    ['get_objects', { class_name: 'Heavy', ids: ['g1'] }, 10_485_971],
    [
      'aggregate',
      { class_name: 'Heavy', pipeline: [{ $match: { objectId: 'g1' } }, { $limit: 1 }] },
      10_485_988,
    ],
  ];

  it.each(CALLS)(
    'is advised in arguments that %s takes and that work: %j',
    { timeout: 60_000 },
    async (tool, args, bytes) => {
      const refused = await call(tool, args);
      const [exceeded] = /^Tool result exceeded .*?\./.exec(refused.text) ?? [];
      expect(exceeded).toBe(`Tool result exceeded 4194304 bytes (${bytes}).`);
      expect(refused.text).toContain('Largest fields by bytes: ');
      const followed = await call(...advised(tool, args, refused.text));
      expect(followed.isError ? followed.text : null).toBeNull();
    },
  );

  it.each([
    ['get_sample_objects', { class_name: 'Heavy', limit: 7 }],
    ['distinct', { class_name: 'Heavy', field: 'body' }],
    ['group_by', { class_name: 'Heavy', field: 'body' }],
    ['query_class', { class_name: 'Heavy', format: 'csv' }],
    ['export_data', { class_name: 'Heavy' }],
    ['export_data', { class_name: 'Heavy', pipeline: [{ $limit: 7 }] }],
  ])('is cut by %s, which says so: %j', { timeout: 60_000 }, async (tool, args) => {
    const { isError, text, data } = await call(tool, args);
    expect(isError).toBe(false);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_194_304);
    expect(data).toHaveProperty('_truncated');
  });

  function advised(
    tool: string,
    args: Record<string, unknown>,
    text: string,
  ): [string, Record<string, unknown>] {
    const [, name = '', json = ''] = / Try (\w+): (\{.*?\}|\[.*?\]|\d+)[. ]/.exec(text) ?? [];
    if (name === 'query_class') return [name, JSON.parse(json) as Record<string, unknown>];
    if (name !== '') return [tool, { ...args, [name]: JSON.parse(json) as unknown }];
    const [, stage = 'null'] =
      /last stage of pipeline: (\{.*?\}\})/.exec(text) ?? / pipeline: (\{.*?\})\./.exec(text) ?? [];
    return [tool, { ...args, pipeline: [...(args['pipeline'] as object[]), JSON.parse(stage) as object] }];
  }
});

describe('what is cut', () => {
  it.each<[string, object, number]>([
    ['export_data', { row_cap: 5000 }, 1500],
    ['export_data', { limit: 1500, row_cap: 1500 }, 1500],
    ['export_data', {}, 100],
    ['export_data', { limit: 1000, format: 'markdown' }, 1000],
    ['export_data', { format: 'table' }, 100],
    ['query_class', { format: 'csv', limit: 1000 }, 1000],
    ['query_class', { format: 'table', limit: 1400 }, 1000],
    ['query_class', { format: 'markdown', limit: 100, skip: 1450 }, 50],
  ])('by %s %j says so, and the next call goes on', async (tool, args, count) => {
    let answer = await call(tool, { class_name: 'Item', order: 'n', ...args });
    expect(answer.data['row_count']).toBe(count);
    let all = count + Number((args as { skip?: number }).skip ?? 0);
    while (answer.data['truncated']) {
      const next = answer.data['next_call'] as { tool: string; arguments: Record<string, unknown> };
      answer = await call(next.tool, next.arguments);
      expect(answer.isError).toBe(false);
      all += Number(answer.data['row_count']);
    }
    expect(all).toBe(1500);
  });

  it('of groups and values says so', async () => {
    for (const tool of ['group_by', 'distinct']) {
      const answer = await call(tool, { class_name: 'Item', field: 'n', limit: 10 });
      expect(answer.data).toMatchObject({
        truncated: true,
        hint: expect.stringContaining('raise limit (max') as string,
      });
    }
  });

  it('names the columns of a pipeline as its caller does', async () => {
    const exported = await call('export_data', {
      class_name: 'Item',
      pipeline: [{ $match: { n: 3 } }],
      columns: ['objectId', 'to', 'n'],
    });
    expect(exported.data['output']).toBe('objectId,to,n\ni0003,t1,3\n');
    const whole = await call('export_data', { class_name: 'Item', pipeline: [{ $match: { n: 3 } }] });
    expect(whole.data['headers']).not.toContain('_p_to');
    expect(whole.data['headers']).toContain('to');
  });
});

describe.each(ROUTES)('keys by %s', (route) => {
  it('get_object and get_objects answer with the keys that were asked for', async () => {
    const ask = by(route);
    const one = await ask('get_object', { class_name: 'Item', object_id: 'i0001', keys: ['n'] });
    expect(Object.keys(one.data['object'] as object).toSorted()).toEqual([
      'createdAt',
      'n',
      'objectId',
      'updatedAt',
    ]);
    const included = await ask('get_objects', {
      class_name: 'Item',
      ids: ['i0001', 'i0002'],
      keys: ['to', 'to.name'],
      include: ['to'],
    });
    expect(JSON.stringify(included.data['objects'])).toContain('Red');
    expect(JSON.stringify(included.data['objects'])).not.toContain('"n"');
    const narrow = await ask('get_object', {
      class_name: 'Narrow',
      object_id: 'n1',
      keys: ['secret', 'title'],
    });
    expect(narrow.data['object']).toMatchObject({ title: 'one' });
    expect(narrow.wire).not.toContain('S3CRET');
    expect(
      shownOf(await ask('get_object', { class_name: 'Item', object_id: 'i0001', keys: 'n' })),
    ).toMatchObject({
      code: 'invalid_argument',
    });
  });

  it('lead through Pointers, as those of Parse Server do', async () => {
    const ask = by(route);
    const keys = { class_name: 'Item', keys: ['to.name'] };
    for (const [tool, ids] of [
      ['get_object', { object_id: 'i0001' }],
      ['get_objects', { ids: ['i0001'] }],
      ['query_class', { where: { objectId: 'i0001' } }],
    ] as const) {
      const answer = await ask(tool, { ...keys, ...ids });
      expect(JSON.stringify(answer.data)).toContain('"name":"Red"');
      expect(JSON.stringify(answer.data)).not.toContain('"n"');
    }
  });

  it('that name an unreadable field or none get one answer, and keys that are no list of names are refused', async () => {
    for (const [tool, ids] of [
      ['get_object', { object_id: 'n1' }],
      ['get_objects', { ids: ['n1'] }],
      ['query_class', {}],
    ] as const) {
      const asked = { class_name: 'Narrow', ...ids };
      const [hidden, none] = await Promise.all(
        ['secret', 'nothing'].map((name) => by(route)(tool, { ...asked, keys: ['title', name] })),
      );
      expect([tool, hidden?.wire.includes('S3CRET')]).toEqual([tool, false]);
      expect([tool, hidden?.text.replaceAll('secret', 'nothing'), hidden?.code]).toEqual([
        tool,
        none?.text,
        none?.code,
      ]);
      for (const keys of ['title', [5], { title: 1 }, Array.from({ length: 65 }, (_, n) => `k${n}`)])
        expect(shownOf(await by(route)(tool, { ...asked, keys }))).toMatchObject({
          isError: true,
          code: 'invalid_argument',
        });
    }
  });
});

describe('what else tools show', () => {
  it('get_schema shows a default filter over a column outside fields', async () => {
    const { data } = await call('get_schema', { class_name: 'Narrow' });
    expect(data['canonical_filter']).toEqual({ archived: { $ne: true } });
    expect(data).not.toHaveProperty('agent_join_fields');
  });

  it('list_tools gives one line for each', async () => {
    const tools = (await call('list_tools', {})).data['tools'] as { description: string }[];
    expect(tools.every(({ description }) => description.length <= 160 && !description.includes('\n'))).toBe(
      true,
    );
  });

  it('which column wants a geo index, and need none for a column of the seed', async () => {
    const near = { $nearSphere: { __type: 'GeoPoint', latitude: 41, longitude: 20 } };
    const found = await call('query_class', { class_name: 'Place', where: { at: near } });
    expect(found.isError ? found.text : (found.data['results'] as object[]).length).toBe(2);
    const refused = await call('query_class', { class_name: 'Item', where: { $and: [{ n: near }] } });
    expect(shownOf(refused)).toMatchObject({ isError: true, code: 'invalid_query' });
    expect(refused.text).toContain("'n' has no geo index");
  });

  it('a dry run shows a pipeline that aggregate takes, with a question to another class as well', async () => {
    const where = { to: { $inQuery: { className: 'Team', where: { name: 'Red' } } }, n: { $lt: 3 } };
    const args = { class_name: 'Item', field: 'n', where, sort: 'key_asc' };
    for (const tool of ['group_by', 'distinct']) {
      const shown = await call(tool, {
        ...args,
        sort: tool === 'distinct' ? 'asc' : 'key_asc',
        dry_run: true,
      });
      const ran = await call('aggregate', { class_name: 'Item', pipeline: shown.data['pipeline'] });
      expect((ran.data['results'] as { _id: number }[]).map(({ _id }) => _id)).toEqual([0, 1, 2]);
    }
  });
});

describe.each(ROUTES)('a tool that judges its class first, over %s', (route) => {
  it.each([
    ['group_by', { field: 'n', limit: 'many' }],
    ['group_by_date', { field: 'createdAt', interval: 'aeon' }],
    ['distinct', { field: 'n', sort: 7 }],
    ['export_data', { format: 'xml' }],
    ['call_method', { method_name: 7 }],
  ])('%s refuses the class before its other arguments', async (name, args) => {
    const asked = (class_name: string) => callTool(services[route], name, { class_name, ...args });
    expect(await asked('_Role')).toMatchObject({ isError: true, code: 'access_denied' });
    expect(await asked('Item')).toMatchObject({ isError: true, code: 'invalid_argument' });
  });
});
