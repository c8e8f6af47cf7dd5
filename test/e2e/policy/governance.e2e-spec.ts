import { beforeAll, describe, expect, it, vi } from 'vitest';
import { callTool, listLogged, rpc, type Service, startService } from '../../support/service.js';
import { POSTS_SEED, POSTS_CONFIG, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';

let service: Service;
beforeAll(async () => {
  service = await startService({
    seed: POSTS_SEED,
    config: {
      ...POSTS_CONFIG,
      agents: {
        analyst: { tenantId: 'acme', rateLimit: 1_000_000 },
        stateless: { rateLimit: 1_000_000 },
        authorsOnly: { tenantId: 'acme', classes: { only: ['Author'] }, rateLimit: 1_000_000 },
        liveOnly: { tenantId: 'acme', filters: { Post: { status: 'live' } }, rateLimit: 1_000_000 },
        lean: { tenantId: 'acme', tools: { profile: 'lean' }, rateLimit: 1_000_000 },
        slow: { rateLimit: 2, rateWindow: 60 },
      },
      auth: [
        ...['stateless', 'authorsOnly', 'liveOnly', 'lean', 'slow'].map((agent) => ({
          apiKey: `key-of-${agent}`,
          agent,
        })),
        { anonymous: true, agent: 'analyst' },
      ],
      policy: POSTS_POLICY,
    },
  });
});

const as = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const query = (args: Record<string, unknown>, headers = {}) =>
  callTool(service, 'query_class', args, headers);
const aggregate = (pipeline: unknown, args: Record<string, unknown> = {}, headers = {}) =>
  callTool(service, 'aggregate', { class_name: 'Post', pipeline, ...args }, headers);

describe('a class outside the policy', () => {
  it.each([
    ['query_class', {}],
    ['count_objects', {}],
    ['get_object', { object_id: 'c1' }],
    ['get_objects', { ids: ['c1'] }],
    ['get_sample_objects', {}],
    ['get_schema', {}],
    ['aggregate', { pipeline: [{ $limit: 1 }] }],
  ])('is refused by %s when hidden', async (tool, args) => {
    const answer = await callTool(service, tool, { class_name: 'Contract', ...args });
    expect(answer).toMatchObject({ isError: true, code: 'access_denied', details: { kind: 'hidden_class' } });
    expect(answer.wire).not.toContain(SECRET);
  });

  it('is refused when the class filter excludes it, and missing from listings', async () => {
    const refused = await query({ class_name: 'Post' }, as('authorsOnly'));
    expect(refused).toMatchObject({ code: 'access_denied', details: { kind: 'class_filter' } });
    const listed = await callTool(service, 'get_all_schemas', {}, as('authorsOnly'));
    expect(listed.wire).toContain('Author');
    expect(listed.wire).not.toMatch(/Post|Contract/);
  });

  it.each([
    ['include', () => query({ class_name: 'Post', include: ['contract'] })],
    [
      'a join',
      () =>
        aggregate([
          { $lookup: { from: 'Contract', localField: 'contract', foreignField: 'objectId', as: 'c' } },
        ]),
    ],
    ['a union', () => aggregate([{ $unionWith: 'Contract' }])],
    [
      'a join inside a facet',
      () => aggregate([{ $facet: { x: [{ $lookup: { from: 'Contract', pipeline: [], as: 'c' } }] } }]),
    ],
    [
      'a sub-query',
      () =>
        query({
          class_name: 'Post',
          where: { contract: { $inQuery: { className: 'Contract', where: {} } } },
        }),
    ],
  ])('is not reached through %s', async (_, probe) => {
    const answer = await probe();
    expect(answer.isError || answer.rpcError !== undefined).toBe(true);
    expect(answer.wire).not.toContain(SECRET);
  });

  it('leaves nothing of itself behind a pointer that a row holds', async () => {
    const answer = await query({ class_name: 'Post', keys: ['contract'], limit: 1 });
    expect(answer.data['results']).toMatchObject([{ contract: { className: 'Contract', __redacted: true } }]);
    expect(answer.wire).not.toContain('"c1"');
  });

  it('differs from a missing one only by its code, and a missing one gets suggestions', async () => {
    const missing = await callTool(service, 'get_schema', { class_name: 'Pots' });
    expect(missing).toMatchObject({ code: 'invalid_argument' });
    expect(missing.text).toContain('Did you mean: Post');
    expect(missing.text).not.toContain('Contract');
  });
});

describe('a field outside the allowlist', () => {
  it.each<[string, () => Promise<{ wire: string; isError: boolean; rpcError: unknown }>]>([
    ['filtering', () => query({ class_name: 'Post', where: { internalNote: { $regex: '^S' } } })],
    ['filtering under $or', () => query({ class_name: 'Post', where: { $or: [{ internalNote: SECRET }] } })],
    ['filtering in snake case', () => query({ class_name: 'Post', where: { internal_note: SECRET } })],
    [
      'counting',
      () => callTool(service, 'count_objects', { class_name: 'Post', where: { internalNote: SECRET } }),
    ],
    ['sorting', () => query({ class_name: 'Post', order: 'internalNote' })],
    ['matching', () => aggregate([{ $match: { internalNote: SECRET } }])],
    ['grouping', () => aggregate([{ $group: { _id: '$internalNote' } }])],
    ['computing', () => aggregate([{ $project: { x: { $toUpper: '$internalNote' } } }])],
    ['$$ROOT', () => aggregate([{ $project: { x: '$$ROOT.internalNote' } }])],
    ['$getField', () => aggregate([{ $project: { x: { $getField: 'internalNote' } } }])],
    [
      'a join on it',
      () =>
        aggregate([
          { $lookup: { from: 'Author', localField: 'internalNote', foreignField: 'ssn', as: 'x' } },
        ]),
    ],
    ['an expression', () => aggregate([{ $match: { $expr: { $eq: ['$internalNote', SECRET] } } }])],
  ])('is refused for %s', async (_, probe) => {
    const answer = await probe();
    expect(answer.isError || answer.rpcError !== undefined).toBe(true);
    expect(answer.wire.replaceAll(JSON.stringify(SECRET), '')).not.toContain(`${SECRET}"`);
  });

  it.each<[string, () => Promise<{ wire: string }>]>([
    ['without keys', () => query({ class_name: 'Post' })],
    [
      'with keys wholly outside',
      () => query({ class_name: 'Post', keys: ['internalNote'], where: { likes: { $lt: 9 } } }),
    ],
    ['by id', () => callTool(service, 'get_object', { class_name: 'Post', object_id: 'p01' })],
    ['as samples', () => callTool(service, 'get_sample_objects', { class_name: 'Post', limit: 20 })],
    ['of an included row', () => query({ class_name: 'Post', include: ['author'], keys: ['title'] })],
    [
      'of an included row, named',
      () => query({ class_name: 'Post', include: ['author'], keys: ['author', 'author.ssn'] }),
    ],
    [
      'of a row that keys lead to',
      () => query({ class_name: 'Post', keys: ['author.ssn', 'contract.clause'] }),
    ],
    ['from a pipeline that projects nothing', () => aggregate([{ $limit: 5 }])],
    ['from a pipeline that excludes', () => aggregate([{ $project: { title: 0 } }])],
    ['through $push of $$ROOT', () => aggregate([{ $group: { _id: null, all: { $push: '$$ROOT' } } }])],
    [
      'of joined rows',
      () =>
        aggregate([{ $lookup: { from: 'Author', localField: 'author', foreignField: 'objectId', as: 'a' } }]),
    ],
    [
      'of a joined pipeline',
      () => aggregate([{ $lookup: { from: 'Author', pipeline: [{ $limit: 5 }], as: 'a' } }]),
    ],
    ['of a union', () => aggregate([{ $unionWith: { coll: 'Author', pipeline: [] } }])],
    ['of users', () => query({ class_name: 'User' })],
    ['in text', () => query({ class_name: 'Post', format: 'csv' })],
    ['in a schema', () => callTool(service, 'get_schema', { class_name: 'Post' })],
  ])('does not come back %s', async (_, probe) => {
    const answer = await probe();
    expect(answer.wire).not.toContain(SECRET);
    expect(answer.wire).not.toMatch(/"internalNote"|"ssn"/);
  });

  it('is named in the refusal with what is allowed', async () => {
    const answer = await query({ class_name: 'Author', where: { ssn: 'x' } });
    expect(answer.details).toMatchObject({ kind: 'field_denied', denied_field: 'ssn' });
    expect(answer.details?.['allowed_fields']).toContain('name');
  });
});

describe('tenants', () => {
  it('see their own rows only, on every path', async () => {
    const count = await callTool(service, 'count_objects', {
      class_name: 'Post',
      apply_canonical_filter: false,
    });
    expect(count.data).toMatchObject({ count: 61 });
    const sum = await aggregate([{ $group: { _id: null, top: { $max: '$likes' } } }]);
    expect(sum.data['results']).toMatchObject([{ top: 59 }]);
    const joined = await callTool(service, 'aggregate', {
      class_name: 'Author',
      pipeline: [
        { $lookup: { from: 'Post', localField: 'objectId', foreignField: 'author', as: 'posts' } },
        { $project: { name: 1, n: { $size: '$posts' } } },
      ],
    });
    expect(joined.data['results']).toMatchObject([{ name: 'Ann', n: 61 }]);
    const union = await callTool(service, 'aggregate', {
      class_name: 'Post',
      pipeline: [{ $unionWith: 'Author' }, { $count: 'n' }],
    });
    expect(union.data['results']).toMatchObject([{ n: 61 }]);
  });

  it.each([
    ['an equal value', { where: { orgId: 'globex' } }],
    ['an operator', { where: { orgId: { $ne: 'acme' } } }],
    ['another spelling', { where: { org_id: 'globex' } }],
  ])('cannot be left by naming another with %s', async (_, args) => {
    const answer = await query({ class_name: 'Post', ...args });
    expect(answer).toMatchObject({ isError: true, code: 'access_denied' });
    expect(answer.wire).not.toContain(SECRET);
  });

  it.each<[string, string, (id: string) => object]>([
    ['get_object', 'get_object', (object_id) => ({ object_id })],
    ['get_object with an include', 'get_object', (object_id) => ({ object_id, include: ['author'] })],
    ['get_objects', 'get_objects', (id) => ({ ids: [id] })],
    ['get_objects beside rows of its own', 'get_objects', (id) => ({ ids: ['p01', id, 'p02'] })],
    ['get_objects with more that are missing', 'get_objects', (id) => ({ ids: ['nobody', id] })],
    ['query_class', 'query_class', (objectId) => ({ where: { objectId } })],
    ['count_objects', 'count_objects', (objectId) => ({ where: { objectId } })],
  ])('learn the same of a row of another tenant and of none: %s', async (_, tool, args) => {
    const [foreign, missing] = await Promise.all(
      ['foreign', 'missing'].map((id) => callTool(service, tool, { class_name: 'Post', ...args(id) })),
    );
    const shownOf = (answer = foreign) => [answer?.text.replaceAll("'missing'", "'foreign'"), answer?.code];
    if (tool.startsWith('get')) expect(shownOf(missing)).toEqual(shownOf());
    else expect(missing?.text.replaceAll('missing', 'foreign')).toBe(foreign?.text);
    expect(foreign?.wire).not.toContain(SECRET);
    if (!tool.startsWith('get')) return;
    expect(foreign).toMatchObject({ code: 'access_denied', details: { kind: 'tenant_scope' } });
    expect(foreign?.text).toContain("'foreign'");
    expect(foreign?.text).not.toContain('p01');
  });

  it('learn only from the audit which of both an id was', async () => {
    for (const [ids, cause] of [
      [['foreign'], 'foreign'],
      [['missing'], 'missing'],
      [['foreign', 'missing', 'p01'], 'foreign and missing'],
    ] as const) {
      const answer = await callTool(service, 'get_objects', { class_name: 'Post', ids });
      expect(answer.wire).not.toContain('cause');
      await vi.waitFor(() =>
        expect(listLogged(service, 'call')).toContainEqual(expect.objectContaining({ cause })),
      );
    }
  });

  it('are refused as long as the agent is bound to none', async () => {
    const answer = await query({ class_name: 'Post' }, as('stateless'));
    expect(answer).toMatchObject({ code: 'access_denied', details: { kind: 'tenant_scope' } });
  });
});

describe('a relation', () => {
  const related = (objectId: string) =>
    query({
      class_name: 'Post',
      where: {
        $relatedTo: { object: { __type: 'Pointer', className: 'Author', objectId }, key: 'favourites' },
      },
      keys: ['title'],
    });

  it('leads to the rows of an owner that the agent may see', async () => {
    const { data } = await related('a1');
    expect((data['results'] as { objectId: string }[]).map((row) => row.objectId).sort()).toEqual([
      'p01',
      'p02',
    ]);
  });

  it('leads nowhere from an owner of another tenant, or from none', async () => {
    expect((await related('a2')).data['results']).toEqual([]);
    expect((await related('nobody')).data['results']).toEqual([]);
  });
});

describe('a query put to another class', () => {
  it('answers under the rules of that class', async () => {
    const authored = (where: object) =>
      query({
        class_name: 'Post',
        where: { author: { $inQuery: { className: 'Author', where } } },
        limit: 1,
      });
    expect((await authored({ name: 'Ann' })).data['result_count']).toBe(1);
    expect((await authored({ name: 'Bob' })).data['result_count']).toBe(0);
    expect((await authored({ ssn: SECRET })).details).toMatchObject({ kind: 'field_denied' });
  });
});

describe('filters', () => {
  it('of the class hide soft-deleted rows until the caller opts out, but a named row is found', async () => {
    const count = async (args: object) =>
      (await callTool(service, 'count_objects', { class_name: 'Post', ...args })).data['count'];
    expect(await count({})).toBe(60);
    expect(await count({ apply_canonical_filter: false })).toBe(61);
    const named = await callTool(service, 'get_object', { class_name: 'Post', object_id: 'gone' });
    expect(named.data).toMatchObject({ object_id: 'gone' });
  });

  it('of the agent cannot be switched off by any argument', async () => {
    const liveOnly = as('liveOnly');
    const all = await callTool(
      service,
      'count_objects',
      { class_name: 'Post', apply_canonical_filter: false, where: { status: 'draft' } },
      liveOnly,
    );
    expect(all.data).toMatchObject({ count: 0, constraints: { status: 'draft' } });
    const named = await callTool(service, 'get_object', { class_name: 'Post', object_id: 'p00' }, liveOnly);
    expect(named).toMatchObject({ code: 'access_denied', details: { kind: 'tenant_scope' } });
    const many = await callTool(
      service,
      'get_objects',
      { class_name: 'Post', ids: ['p00', 'p01'] },
      liveOnly,
    );
    expect(many).toMatchObject({ code: 'access_denied', details: { kind: 'tenant_scope' } });
    expect(many.text).toContain("'p00'");
    const grouped = await aggregate([{ $group: { _id: '$status', n: { $sum: 1 } } }], {}, liveOnly);
    expect(grouped.data['results']).toEqual([{ _id: 'live', n: 40 }]);
  });
});

describe('listing and calling', () => {
  it('agree: a lean agent sees six tools and can call no other', async () => {
    const listed = await rpc(service, 'tools/list', {}, as('lean'));
    const names = (listed.body['result'] as { tools: { name: string }[] }).tools.map((tool) => tool.name);
    expect(names).toEqual([
      'get_all_schemas',
      'get_schema',
      'query_class',
      'count_objects',
      'get_object',
      'aggregate',
    ]);
    const refused = await callTool(service, 'get_objects', { class_name: 'Post', ids: ['p01'] }, as('lean'));
    expect(refused).toMatchObject({ isError: true, code: 'tool_filtered' });
  });

  it('never offer raw mutation tools whose gates are closed', async () => {
    const refused = await callTool(service, 'delete_object', { class_name: 'Post', object_id: 'p01' });
    expect(refused).toMatchObject({ isError: true, code: 'permission_denied' });
  });
});

describe('security refusals', () => {
  it.each([
    ['code in a where', () => query({ class_name: 'Post', where: { $where: 'sleep(1000)' } })],
    [
      'an internal column in a where',
      () => query({ class_name: 'User', where: { _hashed_password: { $regex: '^a' } } }),
    ],
    [
      'an internal column behind a dot',
      () => query({ class_name: 'Post', where: { 'author._hashed_password': 'x' } }),
    ],
    ['a stage that writes', () => aggregate([{ $out: 'Stolen' }])],
    ['a stage that writes inside a facet', () => aggregate([{ $facet: { x: [{ $merge: 'Stolen' }] } }])],
    ['a reference to an internal column', () => aggregate([{ $project: { x: '$_hashed_password' } }])],
    [
      'a regular expression bomb',
      () => query({ class_name: 'Post', where: { title: { $regex: '^(a+)+$' } } }),
    ],
    [
      'a foreign database',
      () => aggregate([{ $lookup: { from: { db: 'admin', coll: 'system.users' }, pipeline: [], as: 'x' } }]),
    ],
  ])('show nothing: %s', async (_, probe) => {
    const answer = await probe();
    expect(answer.rpcError).toEqual({ code: -32602, message: 'Invalid params' });
  });
});

describe('the rate limit', () => {
  it('answers with a code and when to come back, per principal', async () => {
    for (let call = 0; call < 2; call += 1) await callTool(service, 'list_tools', {}, as('slow'));
    const refused = await callTool(service, 'list_tools', {}, as('slow'));
    expect(refused).toMatchObject({ isError: true, code: 'rate_limited' });
    expect(refused.text).toMatch(/^Rate limit exceeded \(2 requests per 60s\)\. Retry after \d+\.\ds$/);
    expect((await callTool(service, 'list_tools', {})).isError).toBe(false);
  });
});
