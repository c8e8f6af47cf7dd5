import { fileURLToPath } from 'node:url';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as ClassicClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClassicTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type DatabaseView, viewDatabase } from '../../support/database-dump.js';
import { callModern, type ModernAnswer } from '../../support/modern-call.js';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  listLogged,
  startService,
} from '../../support/service.js';

const free = { rateLimit: 1_000_000, permissions: 'admin' };
const AGENTS = {
  writer: { ...free, tenantId: 'acme' },
  other: { ...free, tenantId: 'acme' },
  globex: { ...free, tenantId: 'globex' },
};
const CONFIG = {
  agents: AGENTS,
  auth: Object.keys(AGENTS).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  policy: { ...POSTS_POLICY, requireApprovalFor: ['write', 'admin'] },
  plugins: [fileURLToPath(new URL('../../fixtures/plugins/tagging.mjs', import.meta.url))],
};
const ENV = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
  PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
};
const key = (agent: keyof typeof AGENTS) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const WRITER = key('writer');
const change = (title: string, objectId = 'p01') => ({
  class_name: 'Post',
  object_id: objectId,
  fields: { title },
});
const yes = { approve: { action: 'accept', content: { approve: true } } };
const REPLAY = { code: -32602, message: 'Invalid or expired requestState' };

let database: Database;
let view: DatabaseView;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
  view = viewDatabase(database.uri);
  service = await startService({
    config: { ...CONFIG, database: { uri: database.uri, name: 'parley' } },
    env: ENV,
  });
}, 60_000);

const stored = (objectId: string) =>
  view.client
    .db('parley')
    .collection<{ _id: string; title: string; likes: number }>('Post')
    .findOne({ _id: objectId });
const titleOf = async (objectId = 'p01') => (await stored(objectId))?.title;

const records = () => listLogged(service, 'approval');

describe('an approval in the stateless era', () => {
  const call = (args: object, more: object = {}, headers = WRITER) =>
    callModern(service, 'update_object', args, { headers, ...more });
  const refusedWith = ({ body }: ModernAnswer) => body.error;

  it('is asked for with what would change, and lets the call run once', async () => {
    const asked = await call(change('Approved'));
    expect(asked.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: {
        approve: {
          method: 'elicitation/create',
          params: {
            mode: 'form',
            requestedSchema: { properties: { approve: { type: 'boolean' } }, required: ['approve'] },
            _meta: {
              'parse.tool': 'update_object',
              'parse.permission': 'write',
              'parse.preview': {
                tool: 'update_object',
                change: { operation: 'update', before: { title: 'Post 1' }, after: { title: 'Approved' } },
              },
            },
          },
        },
      },
    });
    expect(asked.text).not.toContain(SECRET);
    expect(await titleOf()).toBe('Post 1');
    const { requestState } = asked;
    const done = await call(change('Approved'), { requestState, inputResponses: yes });
    expect(done.result).toMatchObject({ resultType: 'complete', isError: false });
    expect(await titleOf()).toBe('Approved');
    // The row is another one now, which the decision was not about.
    const again = await call(change('Approved'), { requestState, inputResponses: yes });
    expect(again.toolError?.code).toBe('approval_denied');
  });

  it('makes one row, however often the answer is sent', async () => {
    const create = (more: object = {}) =>
      callModern(
        service,
        'create_object',
        { class_name: 'Post', fields: { title: 'Once' } },
        { headers: WRITER, ...more },
      );
    const { requestState, result } = await create();
    expect(result).toMatchObject({
      inputRequests: {
        approve: {
          params: {
            _meta: { 'parse.preview': { change: { operation: 'create', after: { title: 'Once' } } } },
          },
        },
      },
    });
    expect((await create({ requestState, inputResponses: yes })).result).toMatchObject({ isError: false });
    for (let times = 0; times < 3; times++)
      expect(refusedWith(await create({ requestState, inputResponses: yes }))).toEqual(REPLAY);
    const posts = view.client.db('parley').collection('Post');
    expect(await posts.countDocuments({ title: 'Once' })).toBe(1);
  });

  it('is never given by the client itself on the first call', async () => {
    const answer = await call(change('Self-approved', 'p02'), { inputResponses: yes });
    expect(answer.result).toMatchObject({ resultType: 'input_required' });
    expect(await titleOf('p02')).toBe('Post 2');
  });

  it('is never that of another call, caller, tenant or tool', async () => {
    const { requestState } = await call(change('One', 'p02'));
    const given = { requestState, inputResponses: yes };
    const attempts = [
      await call(change('Another', 'p02'), given),
      await call(change('One', 'p03'), given),
      await call(change('One', 'p02'), given, key('other')),
      await call(change('One', 'p02'), given, key('globex')),
      await callModern(service, 'delete_object', change('One', 'p02'), { headers: WRITER, ...given }),
      await call(change('One', 'p02'), { ...given, requestState: `${requestState}x` }),
      await call(change('One', 'p02'), { ...given, requestState: '' }),
    ];
    for (const attempt of attempts) expect(refusedWith(attempt)).toEqual(REPLAY);
    expect(await titleOf('p02')).toBe('Post 2');
  });

  it('counts for nothing once the row has changed', async () => {
    const { requestState } = await call(change('Stale', 'p04'));
    const other = await call({ ...change('Faster', 'p04') });
    await call(change('Faster', 'p04'), { requestState: other.requestState, inputResponses: yes });
    const stale = await call(change('Stale', 'p04'), { requestState, inputResponses: yes });
    expect(stale.toolError).toMatchObject({ code: 'approval_denied' });
    expect(stale.toolError?.text).toContain('has changed since it was shown');
    expect(await titleOf('p04')).toBe('Faster');
  });

  it.each([
    [{ action: 'decline' }, 'operation denied by approver'],
    [{ action: 'cancel' }, 'operation cancelled by approver'],
    [{ action: 'accept', content: { approve: false } }, 'operation denied by approver'],
    [{ action: 'accept' }, 'operation cancelled by approver'],
    [{ action: 'accept', content: {} }, 'operation cancelled by approver'],
    [{ action: 'accept', content: { approve: 'true' } }, 'operation cancelled by approver'],
    [{ action: 'accept', content: { approved: true } }, 'operation cancelled by approver'],
  ])('that is %j refuses the call for good', async (approve, reason) => {
    const { requestState } = await call(change('Refused', 'p05'));
    const refused = await call(change('Refused', 'p05'), { requestState, inputResponses: { approve } });
    expect(refused.toolError).toEqual({ code: 'approval_denied', text: reason });
    const turned = await call(change('Refused', 'p05'), { requestState, inputResponses: yes });
    expect(refusedWith(turned)).toEqual(REPLAY);
    expect(await titleOf('p05')).toBe('Post 5');
  });

  it('is refused to a client that declared no forms', async () => {
    const answer = await call(change('Unasked', 'p05'), { capabilities: { elicitation: { url: {} } } });
    expect(answer.status).toBe(400);
    expect(refusedWith(answer)).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    });
  });

  it('is of the arguments that were sent, also where a preview changes those that it gets', async () => {
    const args = { class_name: 'Post', method_name: 'tag', arguments: { tags: ['tea', 'art'] } };
    const tag = (more: object = {}) => callModern(service, 'call_method', args, { headers: WRITER, ...more });
    const { requestState, result } = await tag();
    expect(result).toMatchObject({
      inputRequests: {
        approve: { params: { _meta: { 'parse.preview': { result: { tags: ['art', 'tea'] } } } } },
      },
    });
    const done = await tag({ requestState, inputResponses: yes });
    expect(done.result).toMatchObject({
      isError: false,
      structuredContent: { result: { tags: ['art', 'tea'] } },
    });
  });

  it('is used by one of two calls that race with it', async () => {
    const increment = {
      class_name: 'Post',
      object_id: 'p06',
      fields: { likes: { __op: 'Increment', amount: 1 } },
    };
    const { requestState } = await call(increment);
    const answers = await Promise.all(
      [1, 2, 3].map(() => call(increment, { requestState, inputResponses: yes })),
    );
    expect(
      answers.filter(({ result }) => result?.['resultType'] === 'complete' && !result['isError']),
    ).toHaveLength(1);
    expect((await stored('p06'))?.likes).toBe(7);
  });

  it('is not asked for a call that would be refused anyway', async () => {
    const missing = await call(change('x', 'nothere'));
    expect(missing.toolError?.code).toBe('access_denied');
    const hidden = await call({ class_name: 'Contract', object_id: 'c1', fields: { clause: 'x' } });
    expect(hidden.toolError?.code).toBe('access_denied');
    expect(hidden.text).not.toContain(SECRET);
  });
});

describe('an approval over a session', () => {
  const info = { name: 'scenario', version: '1.0.0' };

  async function host(answer: (params: Record<string, unknown>) => Promise<unknown>, capable = true) {
    const client = new ClassicClient(info, { capabilities: capable ? { elicitation: {} } : {} });
    if (capable)
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params as never) as never);
    const requestInit = { headers: WRITER };
    await client.connect(new ClassicTransport(new URL(service.url), { requestInit }) as never);
    return client;
  }
  const update = async (client: ClassicClient, args: Record<string, unknown>) =>
    (await client.callTool({ name: 'update_object', arguments: args })) as unknown as {
      isError: boolean;
      content: { text: string }[];
    };

  it('is asked of the official client v1 while the call waits', async () => {
    const seen: Record<string, unknown>[] = [];
    const client = await host(async (params) => {
      seen.push(params);
      return { action: 'accept', content: { approve: true } };
    });
    const result = await update(client, change('Classic', 'p10'));
    expect(result.isError).toBe(false);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({
      requestedSchema: { type: 'object', required: ['approve'] },
      _meta: { 'parse.tool': 'update_object', 'parse.permission': 'write' },
    });
    expect(seen[0]).not.toHaveProperty('mode');
    expect(await titleOf('p10')).toBe('Classic');
    await client.close();
  });

  it.each([
    [{ action: 'decline' }, 'operation denied by approver'],
    [{ action: 'cancel' }, 'operation cancelled by approver'],
    [{ action: 'accept', content: { approve: false } }, 'operation denied by approver'],
    [{ action: 'accept' }, 'operation cancelled by approver'],
    [{ action: 'accept', content: {} }, 'operation cancelled by approver'],
    [{ action: 'accept', content: { approve: 'true' } }, 'operation cancelled by approver'],
    [{ action: 'accept', content: { approved: true } }, 'operation cancelled by approver'],
  ])('answered with %j refuses the call', async (answer, reason) => {
    const client = await host(async () => answer);
    const result = await update(client, change('No', 'p11'));
    expect(result).toMatchObject({ isError: true, content: [{ text: reason }] });
    expect(await titleOf('p11')).toBe('Post 11');
    await client.close();
  });

  it('counts for nothing when the row changed while the person thought', async () => {
    const slow = await host(async () => {
      const quick = await host(async () => ({ action: 'accept', content: { approve: true } }));
      await update(quick, change('Quick', 'p12'));
      await quick.close();
      return { action: 'accept', content: { approve: true } };
    });
    const result = await update(slow, change('Slow', 'p12'));
    expect(result.isError).toBe(true);
    expect(result.content[0]?.text).toContain('has changed since it was shown');
    expect(await titleOf('p12')).toBe('Quick');
    await slow.close();
  });

  it('is refused where nobody can be asked', async () => {
    const client = await host(async () => ({}), false);
    const result = await update(client, change('No', 'p11'));
    expect(result.content[0]?.text).toBe(
      'approval required but the client did not advertise the elicitation capability',
    );
    await client.close();
    const bare = await callTool(service, 'update_object', change('No', 'p11'), WRITER);
    expect(bare).toMatchObject({ isError: true, code: 'approval_denied' });
    expect(await titleOf('p11')).toBe('Post 11');
  });

  it('is not given by a reply that nobody waits for', async () => {
    const session = await rpc(
      service,
      'initialize',
      { protocolVersion: '2025-06-18', capabilities: { elicitation: {} }, clientInfo: info },
      WRITER,
    );
    const headers = { ...WRITER, 'Mcp-Session-Id': session.headers.get('mcp-session-id') ?? '' };
    // JSON only, and no listening stream: nothing can carry the question.
    const refused = await callTool(service, 'update_object', change('No', 'p11'), headers);
    expect(refused.text).toBe('approval required but no listening stream is open to request it');
    const reply = await fetch(service.url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 'forged', result: yes.approve }),
    });
    expect(reply.status).toBe(202);
    expect(await titleOf('p11')).toBe('Post 11');
  });
});

describe('the official client v2', () => {
  it.each<[string, unknown]>([
    ['legacy', 'legacy'],
    ['2026-07-28', { pin: '2026-07-28' }],
  ])('%s, is asked and goes on by itself', async (name, mode) => {
    const client = new ModernClient({ name: 'scenario', version: '1' }, {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode },
    } as never);
    let asked = 0;
    client.setRequestHandler('elicitation/create', () => {
      asked++;
      return { action: 'accept', content: { approve: true } } as never;
    });
    await client.connect(new ModernTransport(new URL(service.url), { requestInit: { headers: WRITER } }));
    const result = await client.callTool({ name: 'update_object', arguments: change(`By ${name}`, 'p13') });
    expect(result.isError).toBe(false);
    expect(asked).toBe(1);
    expect(await titleOf('p13')).toBe(`By ${name}`);
    await client.close();
  });
});

describe('the record of approvals', () => {
  it('names every decision once, with who decided and never with a value', async () => {
    const before = records().length;
    const first = await callModern(service, 'update_object', change('Told', 'p14'), { headers: WRITER });
    const more = { requestState: first.requestState, inputResponses: yes };
    await callModern(service, 'update_object', change('Told', 'p14'), { headers: WRITER, ...more });
    await expect.poll(() => records().length).toBe(before + 1);
    expect(records().at(-1)).toMatchObject({
      tool: 'update_object',
      effective_permission: 'write',
      outcome: 'approve',
      via: 'client',
      agent_name: 'writer',
      tenant_id: 'acme',
    });
    expect(records().at(-1)?.['approver']).toBe(records().at(-1)?.['principal']);
    expect(JSON.stringify(records())).not.toContain('Told');
  });
});
