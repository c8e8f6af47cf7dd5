import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { type DatabaseView, viewDatabase } from '../../support/database-dump.js';
import { callModern } from '../../support/modern-call.js';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';
import {
  callTool,
  type Database,
  type Service,
  startDatabase,
  startService,
  listLogged,
} from '../../support/service.js';
import { listenFor, makeFolder } from '../../support/started.js';

const free = { rateLimit: 1_000_000 };
const AGENTS = {
  writer: { ...free, permissions: 'admin', tenantId: 'acme' },
  chief: { ...free, permissions: 'admin', tenantId: 'acme' },
  deputy: { ...free, tenantId: 'acme' },
  clerk: { ...free, tenantId: 'acme', classes: { only: ['Author'] } },
  outsider: { ...free, permissions: 'admin', tenantId: 'globex' },
};
type AgentName = keyof typeof AGENTS;
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const HOOK_SECRET = 'a secret of the webhook';
const ENV = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
  PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
};

interface Hook {
  readonly url: string;
  readonly heard: { readonly headers: Record<string, unknown>; readonly body: string }[];
}

async function listen(): Promise<Hook> {
  const heard: Hook['heard'] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      heard.push({ headers: request.headers, body });
      // The first announcement has to be repeated.
      response.writeHead(heard.length === 1 ? 302 : 204, { Location: 'http://127.0.0.1:1/elsewhere' }).end();
    });
  });
  const { origin } = await listenFor(server);
  return { url: `${origin}/hook`, heard };
}

let redis: RedisServer;
let database: Database;
let view: DatabaseView;
let hook: Hook;
let one: Service;
let two: Service;
const start = (approvals: object = {}, shared = true, more: object = {}) =>
  startService({
    config: {
      agents: AGENTS,
      auth: Object.keys(AGENTS).map((agent) => ({
        apiKey: `key-of-${agent}`,
        agent,
        name: `named-${agent}`,
      })),
      policy: { ...POSTS_POLICY, requireApprovalFor: ['write', 'admin'] },
      database: { uri: database.uri, name: 'parley' },
      ...(shared && { redis: { url: redis.url } }),
      approvals: {
        mode: 'desk',
        approvers: ['chief', 'deputy', 'clerk', 'outsider'],
        webhook: { url: hook.url, secret: HOOK_SECRET },
        expiry: 120,
        ...approvals,
      },
      ...more,
    },
    env: ENV,
  });

beforeAll(async () => {
  [redis, database, hook] = await Promise.all([startRedis(), startDatabase(POSTS_SEED), listen()]);
  view = viewDatabase(database.uri);
  [one, two] = await Promise.all([start(), start()]);
}, 90_000);
afterAll(async () => {
  await Promise.all([one.stop(), two.stop()]);
  await view.close();
  await Promise.all([database.stop(), redis.stop()]);
});

const change = (objectId: string, title: string) => ({
  class_name: 'Post',
  object_id: objectId,
  fields: { title },
});
const titleOf = async (objectId: string) =>
  (
    await view.client
      .db('parley')
      .collection<{ _id: string; title: string }>('Post')
      .findOne({ _id: objectId })
  )?.title;

interface Seen {
  readonly status: number;
  readonly text: string;
  readonly body: Record<string, never> & { readonly approvals?: Case[] };
}
interface Case {
  readonly id: string;
  readonly tool: string;
  readonly own: boolean;
}

async function rest(
  service: Service,
  agent: AgentName | null,
  path = '',
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Seen> {
  const response = await fetch(`${service.origin}/approvals${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...(agent && as(agent)),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, body: JSON.parse(text) };
}
const pending = async (service: Service, agent: AgentName = 'chief') =>
  (await rest(service, agent)).body.approvals ?? [];
/** What an approver is shown now, as the digest that its decision has to carry. */
const seen = async (service: Service, id: string, agent: AgentName = 'chief') =>
  (await rest(service, agent, `/${id}`)).body['digest'] as string | undefined;
const decide = async (service: Service, id: string, verdict: object, agent: AgentName = 'chief') =>
  rest(service, agent, `/${id}`, { digest: (await seen(service, id, agent)) ?? 'nothing shown', ...verdict });
const approve = (service: Service, id: string, agent: AgentName = 'chief') =>
  decide(service, id, { decision: 'approve' }, agent);

/** The case that a call has just opened. */
const opened = (service: Service, known: readonly string[] = []): Promise<string> =>
  vi.waitFor(
    async () => {
      const found = (await pending(service)).find(({ id }) => !known.includes(id));
      if (!found) throw new Error('no case is open yet');
      return found.id;
    },
    { timeout: 20_000, interval: 50 },
  );

describe('a call that waits for another person', () => {
  it('goes on once that person approved at another replica, and changes the row once', async () => {
    const call = callTool(one, 'update_object', change('p01', 'By desk'), as('writer'));
    const id = await opened(two);
    expect(await titleOf('p01')).toBe('Post 1');
    expect((await approve(two, id)).status).toBe(200);
    expect((await call).isError).toBe(false);
    expect(await titleOf('p01')).toBe('By desk');
    // The answer may have been lost: who says the same again is told so, and nothing runs again.
    expect((await approve(one, id)).status).toBe(200);
    expect((await decide(one, id, { decision: 'deny' })).status).toBe(409);
    expect(await titleOf('p01')).toBe('By desk');
  });

  it('is refused once that person denied, in their words on one line, and is not asked for again', async () => {
    const call = callTool(one, 'update_object', change('p02', 'Denied'), as('writer'));
    const id = await opened(two);
    const reason = 'not\nthis week';
    expect((await decide(two, id, { decision: 'deny', reason })).status).toBe(200);
    expect(await call).toMatchObject({
      isError: true,
      code: 'approval_denied',
      text: 'operation denied by approver: not\\nthis week',
      wire: expect.stringContaining('"kind":"denied_by_person"') as string,
    });
    const again = await callTool(two, 'update_object', change('p02', 'Denied'), as('writer'));
    expect(again.text).toContain('operation denied by approver');
    expect(await titleOf('p02')).toBe('Post 2');
  });

  it('is refused when the row changed in between', async () => {
    const call = callTool(one, 'update_object', change('p03', 'Stale'), as('writer'));
    const id = await opened(one);
    await view.client
      .db('parley')
      .collection<{ _id: string }>('Post')
      .updateOne({ _id: 'p03' }, { $set: { title: 'Meanwhile', _updated_at: new Date() } });
    await approve(two, id);
    const { text, wire } = await call;
    expect(text).toContain('has changed since it was shown');
    expect(wire).not.toContain('denied_by_person');
    expect(await titleOf('p03')).toBe('Meanwhile');
  });

  it('runs once though two calls wait for the same decision', async () => {
    const increment = {
      class_name: 'Post',
      object_id: 'p05',
      fields: { likes: { __op: 'Increment', amount: 1 } },
    };
    const calls = [one, two, one].map((service) =>
      callTool(service, 'update_object', increment, as('writer')),
    );
    const id = await opened(two);
    expect(await pending(one)).toHaveLength(1);
    await approve(one, id);
    let settled = false;
    const outcomes = Promise.all(calls).finally(() => (settled = true));
    // A call that came after the approval was used has a case of its own.
    while (!settled) {
      for (const late of await pending(one)) await decide(one, late.id, { decision: 'deny' });
      await Promise.race([outcomes, new Promise((resolve) => setTimeout(resolve, 100))]);
    }
    expect((await outcomes).filter(({ isError }) => !isError)).toHaveLength(1);
    for (const { code } of (await outcomes).filter(({ isError }) => isError))
      expect(code).toBe('approval_denied');
    const row = await view.client
      .db('parley')
      .collection<{ _id: string; likes: number }>('Post')
      .findOne({ _id: 'p05' });
    expect(row?.likes).toBe(6);
  });

  it('is decided by the first of two approvers, whichever replica they came to', async () => {
    const call = callTool(one, 'update_object', change('p06', 'Raced'), as('writer'));
    const id = await opened(one);
    const answers = await Promise.all([
      decide(one, id, { decision: 'approve' }),
      decide(two, id, { decision: 'deny' }, 'clerk'),
      decide(two, id, { decision: 'deny' }, 'deputy'),
    ]);
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 409, 409]);
    const approved = answers[0]?.status === 200;
    expect((await call).isError).toBe(!approved);
    expect(await titleOf('p06')).toBe(approved ? 'Raced' : 'Post 6');
  });

  it('outlives the process: the same call made again elsewhere finds the decision', async () => {
    const third = await start();
    const lost = callTool(third, 'update_object', change('p07', 'Survived'), as('writer')).catch(
      () => 'lost',
    );
    const id = await opened(one);
    await third.stop();
    await lost;
    expect((await approve(two, id)).status).toBe(200);
    expect((await callTool(one, 'update_object', change('p07', 'Survived'), as('writer'))).isError).toBe(
      false,
    );
    expect(await titleOf('p07')).toBe('Survived');
  }, 60_000);

  it('is asked to repeat itself in the stateless era, needs no capability for it, and runs at any replica', async () => {
    const args = change('p08', 'Polled');
    const options = { headers: as('writer'), capabilities: {} };
    const waiting = callModern(one, 'update_object', args, options);
    const id = await opened(two);
    await approve(two, id);
    const first = await waiting;
    const { requestState } = first;
    const done =
      first.result?.['resultType'] === 'complete'
        ? first
        : await callModern(two, 'update_object', args, { ...options, requestState });
    expect(done.result).toMatchObject({ resultType: 'complete', isError: false });
    expect(await titleOf('p08')).toBe('Polled');
  }, 60_000);
});

describe('a decision', () => {
  const MISSING = 'digest must be the one that came with the preview of this approval';
  const OTHER =
    'this digest is not of what would change now: read the approval again, and decide with its digest';
  const waits = async (service: Service, id: string) => (await pending(service)).some((one) => one.id === id);
  const digestAt = async (service: Service, id: string, agent: AgentName = 'chief') => {
    const digest = await seen(service, id, agent);
    expect(digest).toMatch(/^[\w-]{43}$/);
    return digest;
  };

  it('carries the digest of the preview that was shown, of whichever replica, and no other one is taken', async () => {
    const calls = [change('p10', 'Seen'), change('p11', 'Unseen')].map((args) =>
      callTool(one, 'update_object', args, as('writer')),
    );
    await expect.poll(async () => (await pending(two)).length, { timeout: 20_000 }).toBe(2);
    const [first, second] = (await pending(two)).map(({ id }) => id) as [string, string];
    for (const decision of ['approve', 'deny']) {
      const without = await rest(one, 'chief', `/${first}`, { decision });
      expect([without.status, without.body['error']]).toEqual([400, MISSING]);
      for (const digest of ['', 'x', await digestAt(one, second), await digestAt(one, first, 'deputy')]) {
        const refused = await rest(two, 'chief', `/${first}`, { decision, digest });
        expect([refused.status, refused.body['error']]).toEqual([412, OTHER]);
      }
      for (const digest of [null, 7, [await digestAt(one, first)]])
        expect((await rest(two, 'chief', `/${first}`, { decision, digest })).status).toBe(400);
    }
    expect([await waits(one, first), await waits(two, second)]).toEqual([true, true]);
    expect(await digestAt(one, first)).toBe(await digestAt(two, first));
    const digest = await digestAt(one, first);
    expect((await rest(two, 'chief', `/${first}`, { decision: 'approve', digest })).status).toBe(200);
    expect(await waits(one, second)).toBe(true);
    await decide(one, second, { decision: 'deny' });
    expect((await Promise.all(calls)).filter(({ isError }) => !isError)).toHaveLength(1);
  });

  it.each<[string, object]>([
    ['changed', { $set: { title: 'Meanwhile', _updated_at: new Date() } }],
    ['changed in a column that the call does not write', { $set: { likes: 99 } }],
  ])('is refused when the row was %s since it was shown, and the call still waits', async (_, update) => {
    const rows = view.client.db('parley').collection<{ _id: string }>('Post');
    const call = callTool(one, 'update_object', change('p12', `Over ${_}`), as('writer'));
    const id = await opened(one);
    const digest = await digestAt(one, id);
    await rows.updateOne({ _id: 'p12' }, update);
    const refused = await rest(two, 'chief', `/${id}`, { decision: 'approve', digest });
    expect([refused.status, refused.body['error']]).toEqual([412, OTHER]);
    expect(await waits(one, id)).toBe(true);
    await decide(two, id, { decision: 'deny' });
    expect((await call).isError).toBe(true);
    expect(await titleOf('p12')).not.toContain('Over');
  });

  it.each<[string, string, object, object, object?]>([
    [
      'a change',
      'update_object',
      {
        fields: {
          title: 'Unread',
          likes: { __op: 'Increment', amount: 1 },
          publishedAt: { __type: 'Date', iso: '2025-03-01T00:00:00.000Z' },
          author: { __type: 'Pointer', className: 'Author', objectId: 'a1' },
          tags: { __op: 'Add', objects: ['x'] },
        },
      },
      { title: 'Meanwhile' },
    ],
    ['a deletion', 'delete_object', {}, { title: 'Meanwhile', updatedAt: '2025-02-01T00:00:00.000Z' }],
    [
      'a change of what became too large',
      'update_object',
      { fields: { title: 'Unread', tags: [] } },
      { title: 'too large to be shown', tags: 'too large to be shown' },
      { tags: Array.from({ length: 20 }, () => '長'.repeat(500)) },
    ],
  ])(
    'is about what the row holds by now, which %s shows where the caller found it otherwise',
    async (...of) => {
      const [, tool, args, now, more = {}] = of;
      const rows = view.client.db('parley').collection<{ _id: string }>('Post');
      const row = await rows.findOne({ _id: 'p14' });
      const call = callTool(one, tool, { class_name: 'Post', object_id: 'p14', ...args }, as('writer'));
      const id = await opened(one);
      const shown = async (agent: AgentName) =>
        ((await rest(two, agent, `/${id}`)).body as { readonly preview?: { readonly change: object } })
          .preview?.change;
      for (const agent of ['chief', 'deputy'] as const) expect(await shown(agent)).not.toHaveProperty('now');
      await rows.updateOne(
        { _id: 'p14' },
        { $set: { title: 'Meanwhile', _updated_at: new Date('2025-02-01T00:00:00.000Z'), ...more } },
      );
      for (const agent of ['chief', 'deputy'] as const) expect(await shown(agent)).toMatchObject({ now });
      await decide(two, id, { decision: 'deny' });
      await call;
      if (row) await rows.replaceOne({ _id: 'p14' }, row);
    },
  );

  it('is refused when the row is gone since it was shown', async () => {
    const rows = view.client.db('parley').collection<{ _id: string }>('Post');
    const row = await rows.findOne({ _id: 'p13' });
    const call = callTool(one, 'delete_object', { class_name: 'Post', object_id: 'p13' }, as('writer'));
    const id = await opened(one);
    const digest = await digestAt(one, id);
    await rows.deleteOne({ _id: 'p13' });
    expect((await rest(two, 'chief', `/${id}`, { decision: 'approve', digest })).status).toBe(412);
    await decide(two, id, { decision: 'deny' });
    await call;
    if (row) await rows.insertOne(row);
  });

  it('that approves is not taken from an approver who may not read what would change; a denial is', async () => {
    const call = callTool(one, 'update_object', change('p14', 'Blind'), as('writer'));
    const id = await opened(one);
    const blind = await approve(two, id, 'clerk');
    expect([blind.status, blind.body['error']]).toEqual([
      403,
      'what this call would change cannot be shown to this agent: another approver has to approve it',
    ]);
    expect((await decide(two, id, { decision: 'deny' }, 'clerk')).status).toBe(200);
    expect((await call).isError).toBe(true);
  });
});

describe('the approvals of approvers', () => {
  let id: string;
  let call: Promise<unknown>;
  beforeAll(async () => {
    call = callTool(one, 'update_object', { ...change('p20', 'Shown') }, as('writer'));
    id = await opened(two);
  });
  afterAll(async () => {
    await decide(one, id, { decision: 'deny' });
    await call;
  });

  it('are shown with what would change, and nothing that either side may not read', async () => {
    const { status, body, text } = await rest(two, 'chief', `/${id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id,
      status: 'pending',
      tool: 'update_object',
      permission: 'write',
      own: false,
      requester: { agent: 'writer', key_name: 'named-writer' },
      preview: { change: { operation: 'update', before: { title: 'Post 20' }, after: { title: 'Shown' } } },
    });
    expect(text).not.toContain(SECRET);
    const clerk = await rest(two, 'clerk', `/${id}`);
    expect(clerk.body).toMatchObject({
      preview: { preview_error: 'of a class or row that you may not read' },
    });
    expect(clerk.text).not.toContain('Shown');
  });

  it('are those of their own tenant', async () => {
    expect(await pending(one, 'outsider')).toEqual([]);
    expect((await rest(one, 'outsider', `/${id}`)).status).toBe(404);
    expect((await approve(one, id, 'outsider')).status).toBe(404);
  });

  it('are for approvers alone', async () => {
    for (const path of ['', `/${id}`]) {
      expect((await rest(one, null, path)).status).toBe(401);
      expect((await rest(one, 'writer', path)).status).toBe(403);
    }
    expect((await rest(one, null, `/${id}`, { decision: 'approve' })).status).toBe(401);
    expect((await approve(one, id, 'writer')).status).toBe(403);
    expect((await approve(one, 'nothing-like-it')).status).toBe(404);
  });

  it('cannot be decided by a page of another site, or by what is no decision', async () => {
    const digest = await seen(one, id);
    const yes = JSON.stringify({ decision: 'approve', digest });
    const send = (body: string, headers: Record<string, string> = {}) =>
      rest(one, 'chief', `/${id}`, body, headers);
    expect((await send(yes, { 'Content-Type': 'text/plain' })).status).toBe(415);
    expect((await send(yes, { 'Content-Type': 'application/x-www-form-urlencoded' })).status).toBe(415);
    expect((await send(yes, { 'Content-Type': 'application/jsonx' })).status).toBe(415);
    for (const body of ['', '[]', '{}', '{"decision":"maybe"}', '{"decision":true}', '{"decision":'])
      expect((await send(body)).status).toBe(400);
    expect((await send(JSON.stringify({ decision: 'deny', digest, reason: 7 }))).status).toBe(400);
    const long = { decision: 'approve', digest, reason: 'x'.repeat(20_000) };
    expect((await send(JSON.stringify(long))).status).toBe(413);
    expect((await pending(one)).map((known) => known.id)).toContain(id);
  });

  it('are never their own', async () => {
    const own = callTool(one, 'update_object', change('p21', 'Own'), as('chief'));
    const ownId = await opened(two, [id]);
    expect((await pending(two)).find((known) => known.id === ownId)?.own).toBe(true);
    expect((await approve(two, ownId)).status).toBe(403);
    expect((await approve(one, ownId, 'deputy')).status).toBe(200);
    await own;
    expect(await titleOf('p21')).toBe('Own');
  });

  it('are announced with a signature, again after a failure, and without values', async () => {
    await expect.poll(() => hook.heard.some(({ body }) => body.includes(id)), { timeout: 20_000 }).toBe(true);
    expect(hook.heard[0]?.body).toBe(
      hook.heard.find(({ body }, at) => at > 0 && body === hook.heard[0]?.body)?.body,
    );
    for (const { headers, body } of hook.heard) {
      const [, seconds, signature] =
        /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-parley-signature'])) ?? [];
      expect(createHmac('sha256', HOOK_SECRET).update(`${seconds}.${body}`).digest('hex')).toBe(signature);
      expect(Object.keys(JSON.parse(body) as object).sort()).toEqual(
        ['agent', 'expires_at', 'id', 'permission', 'requested_at', 'tenant', 'tool', 'type'].sort(),
      );
    }
  });

  it('leave one record each, naming who decided', async () => {
    const decided = [one, two].flatMap((service) =>
      listLogged(service, 'approval').filter(({ via }) => via === 'desk'),
    );
    const ids = decided.map(({ approval_id: recorded }) => recorded);
    expect(ids.length).toBeGreaterThan(0);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { approver, principal } of decided) expect(approver).not.toBe(principal);
  });
});

describe('a desk of one process', () => {
  it('refuses what nobody decided in time, and takes no decision after that', async () => {
    const alone = await start({ expiry: 6, webhook: null }, false);
    try {
      const call = callTool(alone, 'update_object', change('p30', 'Late'), as('writer'));
      const id = await opened(alone);
      expect((await call).text).toBe('approval request timed out after 6s');
      expect((await approve(alone, id)).status).toBe(404);
      expect(await titleOf('p30')).toBe('Post 30');
    } finally {
      await alone.stop();
    }
  }, 60_000);

  it('with both kinds of approver asks the client first, and then the other person', async () => {
    const alone = await start({ mode: 'both', webhook: null }, false);
    try {
      const args = change('p31', 'Both');
      const options = { headers: as('writer') };
      const { requestState } = await callModern(alone, 'update_object', args, options);
      expect(await pending(alone)).toEqual([]);
      const inputResponses = { approve: { action: 'accept', content: { approve: true } } };
      const waiting = callModern(alone, 'update_object', args, { ...options, requestState, inputResponses });
      const id = await opened(alone);
      await approve(alone, id);
      expect((await waiting).result).toMatchObject({ resultType: 'complete', isError: false });
      expect(await titleOf('p31')).toBe('Both');
    } finally {
      await alone.stop();
    }
  }, 60_000);

  it.each([
    ['its id', 'id', { object_id: 'p32' }],
    ['a digest of it', undefined, { object_digest: expect.stringMatching(/^[0-9a-f]{8}:[0-9a-f]{32}$/) }],
    ['nothing', 'none', {}],
  ])(
    'joins the record of a decision with that of its call, whose row is named by %s',
    async (_, objects, row) => {
      const folder = makeFolder('joined');
      const path = join(folder, 'audit.jsonl');
      const audit = { sinks: [{ kind: 'file', path }], ...(objects && { objects }) };
      const alone = await start({ webhook: null }, false, { audit });
      const records = (type: string) =>
        readFileSync(path, 'utf8')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as Record<string, unknown>)
          .filter((record) => record['type'] === type);
      const shared = [
        'key_name',
        'class_name',
        'object_id',
        'object_digest',
        'args_digest',
        'policy_version',
        'approval_id',
      ];
      const joined = (record: Record<string, unknown>) =>
        Object.fromEntries(shared.map((name) => [name, record[name]]));
      try {
        for (const verdict of ['approved', 'denied'] as const) {
          const call = callTool(alone, 'update_object', change('p32', `Joined ${verdict}`), as('writer'));
          const id = await opened(alone);
          await (verdict === 'approved'
            ? approve(alone, id)
            : decide(alone, id, { decision: 'deny', digest: await seen(alone, id) }));
          expect((await call).isError).toBe(verdict === 'denied');
          const [decision, made] = [records('approval').at(-1), records('tool_call').at(-1)];
          expect(made).toMatchObject({
            approval_id: id,
            key_name: 'named-writer',
            class_name: 'Post',
            args_digest: expect.any(String),
            ...row,
          });
          expect(joined(decision ?? {})).toEqual(joined(made ?? {}));
          if (objects !== 'id') expect(JSON.stringify([decision, made])).not.toContain('p32');
        }
      } finally {
        await alone.stop();
      }
    },
    60_000,
  );
});
