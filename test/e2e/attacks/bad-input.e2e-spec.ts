import fc from 'fast-check';
import { connect } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { callTool, post, rpc, type Service, startService } from '../../support/service.js';
import { POSTS_SEED, POSTS_CONFIG, SECRET } from '../../fixtures/posts.fixture.js';

let service: Service;
beforeAll(async () => {
  service = await startService({ seed: POSTS_SEED, config: POSTS_CONFIG });
});

const error = (code: number, message: string, id: unknown = null) => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});

describe('a request that is no MCP request', () => {
  it.each<[string, string, Record<string, string>, number, object]>([
    ['is not JSON', '{', {}, 400, error(-32700, 'Parse error: invalid JSON')],
    [
      'is nested too deep',
      `${'['.repeat(30)}${']'.repeat(30)}`,
      {},
      400,
      error(-32700, 'Parse error: invalid JSON'),
    ],
    ['is empty', '', {}, 400, error(-32600, 'Invalid Request')],
    ['is an array', '[]', {}, 400, error(-32600, 'Invalid Request')],
    ['has no method', '{"jsonrpc":"2.0","id":1}', {}, 400, error(-32600, 'Invalid Request')],
    [
      'has a method that is no string',
      '{"jsonrpc":"2.0","id":1,"method":5}',
      {},
      400,
      error(-32600, 'Invalid Request'),
    ],
    [
      'is of another type',
      '{}',
      { 'Content-Type': 'text/plain' },
      415,
      error(-32700, 'Unsupported Media Type: Content-Type must be application/json'),
    ],
    [
      'comes from a foreign page',
      '{}',
      { Origin: 'https://evil.example' },
      403,
      error(-32700, 'Origin not allowed'),
    ],
    [
      'names a revision that is not served',
      '{"jsonrpc":"2.0","id":7,"method":"tools/list"}',
      { 'MCP-Protocol-Version': '1999-01-01' },
      400,
      error(-32600, 'Unsupported MCP-Protocol-Version: 1999-01-01', 7),
    ],
    [
      'is too large',
      JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { pad: 'x'.repeat(1_100_000) } }),
      {},
      413,
      error(-32700, 'Payload Too Large: body exceeds 1048576 bytes'),
    ],
  ])('%s', async (_, body, headers, status, answer) => {
    const got = await post(service, body, headers);
    expect(got.status).toBe(status);
    expect(got.body).toEqual(answer);
    expect(got.headers.get('content-type')).toBe('application/json');
  });

  it('shows a wrong credential', async () => {
    const answer = await rpc(service, 'tools/list', {}, { 'X-MCP-API-Key': 'wrong' });
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual(error(-32001, 'Unauthorized'));
  });

  it('asks for another verb or path', async () => {
    const put = await fetch(service.url, { method: 'PUT', body: '{}' });
    expect(put.status).toBe(405);
    expect(put.headers.get('allow')).toContain('POST');
    expect((await fetch(service.url)).status).toBe(405);
    const below = await fetch(`${service.url}/x`, { method: 'POST', body: '{}' });
    expect(below.status).toBe(404);
    expect(await below.json()).toEqual(error(-32601, 'Not Found'));
  });

  it('has no declared length', async () => {
    const { hostname, port } = new URL(service.url);
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () =>
        socket.end(
          'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n',
        ),
      );
      let text = '';
      socket.on('data', (chunk) => (text += chunk.toString()));
      socket.on('close', () => resolve(text));
      socket.on('error', reject);
    });
    expect(answer).toContain('411');
    expect(answer).toContain('Length Required');
  });
});

describe('a tool call with bad arguments', () => {
  it.each<[string, string, unknown, string, RegExp]>([
    ['an unknown tool', 'no_such_tool', {}, 'permission_denied', /requires unknown permissions/],
    ['no class', 'query_class', {}, 'invalid_argument', /^Invalid arguments: /],
    ['a class that is no identifier', 'query_class', { class_name: 'a.b' }, 'invalid_argument', /identifier/],
    [
      'a class that does not exist',
      'query_class',
      { class_name: 'Pots' },
      'invalid_argument',
      /Did you mean: Post/,
    ],
    ['a limit of zero', 'query_class', { class_name: 'Post', limit: 0 }, 'invalid_argument', /limit/],
    [
      'a limit that is text',
      'query_class',
      { class_name: 'Post', limit: 'ten' },
      'invalid_argument',
      /limit/,
    ],
    ['a negative skip', 'query_class', { class_name: 'Post', skip: -1 }, 'invalid_argument', /skip/],
    ['a where that is a list', 'query_class', { class_name: 'Post', where: [] }, 'invalid_query', /./],
    [
      'an unknown operator',
      'query_class',
      { class_name: 'Post', where: { likes: { $near_ish: 1 } } },
      'invalid_query',
      /Unknown query operator/,
    ],
    [
      'keys that are no list',
      'query_class',
      { class_name: 'Post', keys: 'title' },
      'invalid_argument',
      /keys/,
    ],
    [
      'an internal key',
      'query_class',
      { class_name: 'Post', keys: ['_rperm'] },
      'invalid_argument',
      /underscore-prefixed names are not permitted/,
    ],
    ['an unknown format', 'query_class', { class_name: 'Post', format: 'xml' }, 'invalid_argument', /format/],
    [
      'an opt-out that is no boolean',
      'count_objects',
      { class_name: 'Post', apply_canonical_filter: 'no' },
      'invalid_argument',
      /apply_canonical_filter/,
    ],
    ['an id that is none', 'get_object', { class_name: 'Post', object_id: 'a b' }, 'invalid_argument', /./],
    [
      'an object that is not there',
      'get_object',
      { class_name: 'Post', object_id: 'nope' },
      'access_denied',
      /^This agent's tenant has no object of class 'Post' under the id: 'nope'$/,
    ],
    [
      'too many ids',
      'get_objects',
      { class_name: 'Post', ids: Array.from({ length: 51 }, (_, i) => `i${i}`) },
      'invalid_argument',
      /50/,
    ],
    ['no ids', 'get_objects', { class_name: 'Post' }, 'invalid_argument', /ids is required/],
    [
      'a number against a text operator',
      'aggregate',
      { class_name: 'Post', pipeline: [{ $project: { x: { $toUpper: ['a', 'b', 'c'] } } }] },
      'invalid_query',
      /./,
    ],
  ])('%s', async (_, tool, args, code, text) => {
    const answer = await callTool(service, tool, args);
    expect(answer).toMatchObject({ isError: true, code });
    expect(answer.text).toMatch(text);
  });

  it('never honours an identity in the arguments', async () => {
    for (const name of ['master', 'use_master_key', 'session_token', 'acl_user', 'acl_role', 'tenant_id']) {
      const answer = await callTool(service, 'count_objects', { class_name: 'Post', [name]: 'globex' });
      expect(answer.data).toMatchObject({ count: 60 });
    }
  });
});

const field = fc.constantFrom(
  'title',
  'likes',
  'author',
  'orgId',
  'internalNote',
  'internal_note',
  '_hashed_password',
  '_rperm',
  'objectId',
  'createdAt',
  'contract',
  'author.name',
  'a.b.c',
  '$where',
  '__proto__',
  'constructor',
  '',
  '_p_author',
  'tags',
  '0',
);
const operator = fc.constantFrom(
  '$eq',
  '$ne',
  '$gt',
  '$in',
  '$nin',
  '$exists',
  '$regex',
  '$options',
  '$all',
  '$or',
  '$and',
  '$nor',
  '$not',
  '$where',
  '$expr',
  '$inQuery',
  '$select',
  '$relatedTo',
  '$near',
  '$geoWithin',
  '$text',
  '$elemMatch',
  '$size',
  '$function',
  '$containedIn',
);
const leaf = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.constantFrom(
    '$$ROOT',
    '$title',
    '$_hashed_password',
    'Contract$c1',
    '(a+)+$',
    SECRET.slice(0, 4),
    'p01',
    'Post$p01',
  ),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.constant({ __type: 'Pointer', className: 'Contract', objectId: 'c1' }),
  fc.constant({ __type: 'Date', iso: 'not a date' }),
  fc.constant({ __type: 'GeoPoint', latitude: 100, longitude: 'x' }),
);
const tree = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    leaf,
    fc.array(tie('node'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(field, operator), tie('node'), { maxKeys: 3 }),
  ),
})).node;
const stage = fc.dictionary(
  fc.constantFrom(
    '$match',
    '$group',
    '$project',
    '$sort',
    '$limit',
    '$skip',
    '$unwind',
    '$lookup',
    '$count',
    '$addFields',
    '$unset',
    '$bucket',
    '$facet',
    '$sample',
    '$sortByCount',
    '$replaceRoot',
    '$redact',
    '$graphLookup',
    '$unionWith',
    '$out',
    '$search',
    'match',
  ),
  fc.oneof(
    tree,
    fc.constantFrom('$title', 5, 'Contract', 'Author'),
    fc.constant({ _id: '$status', n: { $sum: '$likes' } }),
    fc.constant({ from: 'Author', localField: 'author', foreignField: 'objectId', as: 'a' }),
    fc.constant({ from: 'Contract', pipeline: [], as: 'a' }),
  ),
  { minKeys: 1, maxKeys: 1 },
);

/** Every answer is a regular one: no crash, no internal error, nothing that may not be read. */
async function expectProperAnswer(name: string, args: unknown): Promise<void> {
  const answer = await callTool(service, name, args);
  expect(answer.rpcError?.code ?? -32602).toBe(-32602);
  expect(answer.code).not.toBe('internal_error');
  expect(answer.wire).not.toContain(SECRET);
}

describe('fuzzing', () => {
  it('a where never crashes anything, is never an internal error, never shows what is denied', async () => {
    await fc.assert(
      fc.asyncProperty(
        tree,
        fc.constantFrom('query_class', 'count_objects', 'group_by', 'explain_query', 'export_data'),
        (where, tool) => expectProperAnswer(tool, { class_name: 'Post', field: 'status', where }),
      ),
      { numRuns: 400 },
    );
  });

  it('a pipeline never crashes anything, is never an internal error, never shows what is denied', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(stage, { maxLength: 4 }),
        fc.constantFrom('aggregate', 'export_data'),
        (pipeline, tool) => expectProperAnswer(tool, { class_name: 'Post', pipeline }),
      ),
      { numRuns: 600 },
    );
  });

  it('the arguments of any tool never crash anything, are never an internal error, never show what is denied', async () => {
    const tools = fc.constantFrom(
      'list_tools',
      'get_all_schemas',
      'get_schema',
      'query_class',
      'count_objects',
      'get_object',
      'get_objects',
      'get_sample_objects',
      'explain_query',
      'aggregate',
      'group_by',
      'group_by_date',
      'distinct',
      'export_data',
    );
    const args = fc.dictionary(
      fc.constantFrom(
        'class_name',
        'where',
        'limit',
        'skip',
        'order',
        'keys',
        'include',
        'format',
        'object_id',
        'ids',
        'pipeline',
        'names',
        'prefix',
        'category',
        'field',
        'value_field',
        'operation',
        'interval',
        'timezone',
        'sort',
        'flatten_arrays',
        'dry_run',
        'columns',
        'row_cap',
      ),
      fc.oneof(
        tree,
        fc.constantFrom<unknown>('Post', 'Author', '-likes', ['title'], ['author'], 'p01', [
          'p01',
          'foreign',
        ]),
        fc.constantFrom<unknown>(
          'publishedAt',
          '_p_author',
          'contract',
          'internalNote',
          'sum',
          'month',
          'key_asc',
        ),
        fc.constantFrom<unknown>(
          'Europe/Berlin',
          'Mars/Phobos',
          [{ title: '=1+1' }],
          ['_rperm'],
          [{ $group: { _id: '$title' } }],
        ),
      ),
      { maxKeys: 6 },
    );
    await fc.assert(
      fc.asyncProperty(tools, args, (name, given) =>
        expectProperAnswer(name, { class_name: 'Post', field: 'title', interval: 'day', ...given }),
      ),
      { numRuns: 400 },
    );
  });

  it('a frame never crashes anything, is never an internal error, never shows what is denied', async () => {
    const frame = fc.record(
      {
        jsonrpc: fc.constantFrom('2.0', '1.0', 2),
        id: fc.oneof(leaf, fc.constant({})),
        method: fc.oneof(
          fc.constantFrom(
            'tools/call',
            'tools/list',
            'initialize',
            'resources/read',
            'prompts/get',
            'completion/complete',
            'notifications/x',
            'ping',
          ),
          leaf,
        ),
        params: fc.oneof(
          tree,
          fc.record({ name: leaf, arguments: tree, uri: leaf, cursor: leaf, ref: tree, argument: tree }),
        ),
      },
      { requiredKeys: [] },
    );
    const version = fc.constantFrom(undefined, '2025-11-25', '2025-06-18', '2026-07-28', 'x');
    await fc.assert(
      fc.asyncProperty(frame, version, async (body, header) => {
        const answer = await post(
          service,
          JSON.stringify(body),
          header === undefined ? {} : { 'MCP-Protocol-Version': header },
        );
        expect(answer.status).toBeLessThan(500);
        expect(answer.body.error?.code).not.toBe(-32603);
        expect(answer.text).not.toContain(SECRET);
      }),
      { numRuns: 500 },
    );
  });

  it('leaves the service up and the log without a secret', async () => {
    expect(service.isRunning()).toBe(true);
    expect((await fetch(`${service.origin}/health`)).status).toBe(200);
    expect(service.output().stderr).not.toContain(SECRET);
    expect(service.output().stdout).toBe('');
  });
});
