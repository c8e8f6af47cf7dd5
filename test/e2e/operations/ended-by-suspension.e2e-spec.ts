import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { existsSync, writeFileSync } from 'node:fs';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { type RedisServer, startRedis } from '#state/contracts';
import { decideApproval } from '../../support/decide-approval.js';
import { callModern } from '../../support/modern-call.js';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const WAIT = { timeout: 20_000, interval: 50 };
const SAID = "agent 'analyst' is suspended";
const ENDED = 'Ended before it was done: the agent is suspended';
const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const key = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const ANALYST = key('analyst');
const WRITER = key('writer');
const GATES = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };
const HOST = { Host: 'localhost' };
/** More than the buffers between a file and a reader who does not read. */
const ROWS = 30_000;

const agents = {
  analyst: { permissions: 'write', rateLimit: 1_000_000 },
  guest: { rateLimit: 1_000_000 },
  chief: { rateLimit: 1_000_000 },
  writer: { permissions: 'write', rateLimit: 1_000_000 },
};
const config = {
  agents,
  auth: [
    { apiKey: 'key-of-analyst', agent: 'analyst' },
    { apiKey: 'key-of-chief', agent: 'chief' },
    { apiKey: 'key-of-writer', agent: 'writer' },
  ],
  policy: { unlistedClasses: 'allow', requireApprovalFor: ['write'] },
  approvals: { mode: 'desk', approvers: ['chief', 'analyst'] },
  plugins: [file('../../fixtures/plugins/slow.mjs'), file('../../fixtures/plugins/delegating.mjs')],
  console: { operators: ['chief'] },
  subscriptions: { debounce: 0.05 },
  server: { drainTimeout: 60 },
};

const folder = makeFolder('ended');
let redis: RedisServer;
let database: Database;
let here: Service;
let there: Service;
let environment: Record<string, string>;
const startReplica = () => startService({ config, env: environment });

beforeAll(async () => {
  [redis, database] = await Promise.all([
    startRedis(),
    startDatabase({
      schemas: [{ className: 'Post', fields: { title: { type: 'String' } } }],
      objects: {
        Post: Array.from({ length: ROWS }, (_, at) => ({
          objectId: `p${at}`,
          title: `${at} `.repeat(60),
        })),
      },
    }),
  ]);
  environment = { ...GATES, REDIS_URL: redis.url, MONGODB_URI: database.uri };
  [here, there] = await Promise.all([startReplica(), startReplica()]);
}, 120_000);
afterAll(async () => {
  await Promise.all([here, there].map((service) => service?.kill()));
  await Promise.all([database?.stop(), redis?.stop()]);
});

const change = async (action: 'suspend' | 'resume', agent = 'analyst', service = here) => {
  const { status } = await fetch(`${service.origin}/console/api/suspensions/${agent}`, {
    method: 'POST',
    headers: { ...key('chief'), 'Content-Type': 'application/json', 'X-Parley-Console': '1' },
    body: JSON.stringify({ action, reason: 'gone wild' }),
  });
  expect(status).toBe(200);
};
const isAdmitted = (service: Service) =>
  vi.waitFor(async () => expect((await rpc(service, 'tools/list', {}, ANALYST)).status).toBe(200), WAIT);
afterEach(async () => {
  await change('resume');
  await Promise.all([isAdmitted(here), isAdmitted(there)]);
});

/** The case that waits for a decision. */
const findCase = (service: Service, headers: Record<string, string>) =>
  vi.waitFor(async () => {
    const answer = await fetch(`${service.origin}/approvals`, { headers });
    const [open] = ((await answer.json()) as { approvals: { id: string }[] }).approvals;
    return String(open?.id ?? expect.unreachable());
  }, WAIT);

let id = 0;
/** What a slow call waits for, which never comes. */
const awaited = () => {
  const until = join(folder, `${++id}`);
  return { until, begun: () => vi.waitFor(() => expect(existsSync(`${until}.begun`)).toBe(true), WAIT) };
};

describe('the suspension of an agent on one replica ends on another', { timeout: 120_000 }, () => {
  it('the listening stream of a session, which opens no more until the agent is resumed', async () => {
    const opened = await rpc(
      there,
      'initialize',
      { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
      ANALYST,
    );
    const session = { ...ANALYST, 'Mcp-Session-Id': opened.headers.get('mcp-session-id') ?? '' };
    await rpc(there, 'resources/subscribe', { uri: 'parse://Post/count' }, session);
    const listen = () => fetch(there.url, { headers: { ...session, Accept: 'text/event-stream' } });
    const stream = await listen();
    expect(stream.status).toBe(200);
    await change('suspend');
    await stream.text();
    expect((await listen()).status).toBe(403);
    await change('resume');
    await isAdmitted(there);
    const again = await listen();
    expect(again.status).toBe(200);
    await again.body?.cancel();
  });

  it('a download in the middle', async () => {
    const asked = { class_name: 'Post', delivery: 'resource' };
    const { data } = await callTool(there, 'export_data', asked, ANALYST);
    const { path } = data as { path: string };
    const download = await new Promise<IncomingMessage>((resolve, reject) => {
      httpGet(there.origin + path, { headers: ANALYST }, (response) => {
        response.pause();
        resolve(response);
      }).on('error', reject);
    });
    await change('suspend');
    await vi.waitFor(
      async () => expect((await rpc(there, 'tools/list', {}, ANALYST)).status).toBe(403),
      WAIT,
    );
    const isWhole = await new Promise((resolve) => {
      download.on('close', () => resolve(download.complete));
      download.on('error', () => undefined);
      download.resume();
    });
    expect([download.statusCode, isWhole]).toEqual([200, false]);
  });

  it('a call that waits for an approval, which runs nothing when it is given', async () => {
    const row = { class_name: 'Post', object_id: 'p1' };
    const call = callTool(there, 'update_object', { ...row, fields: { title: 'changed' } }, ANALYST);
    const id = await findCase(here, key('chief'));
    await change('suspend');
    expect((await call).text).toContain(ENDED);
    const decided = await decideApproval(`${here.origin}/approvals/${id}`, key('chief'), {
      decision: 'approve',
    });
    expect(decided.status).toBe(200);
    const { data } = await callTool(here, 'get_object', row, key('chief'));
    expect(JSON.stringify(data)).not.toContain('changed');
  });

  it('what its approver approved and nobody has used', async () => {
    const row = { class_name: 'Post', object_id: 'p2' };
    const args = { ...row, fields: { title: 'approved' } };
    const leaving = new AbortController();
    const left = fetch(there.url, {
      method: 'POST',
      headers: { ...WRITER, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'update_object', arguments: args },
      }),
      signal: leaving.signal,
    }).catch(() => undefined);
    const id = await findCase(here, ANALYST);
    leaving.abort();
    await left;
    const decided = await decideApproval(`${here.origin}/approvals/${id}`, ANALYST, { decision: 'approve' });
    expect(decided.status).toBe(200);
    await change('suspend');
    await vi.waitFor(async () => expect((await rpc(there, 'ping', {}, ANALYST)).status).toBe(403), WAIT);
    const again = await callTool(there, 'update_object', args, WRITER);
    expect(again.text).toContain('who gave it may not decide any more');
    const { data } = await callTool(here, 'get_object', row, key('chief'));
    expect(JSON.stringify(data)).not.toContain('approved');
  });

  it('what runs where a replica is asked to end, which waits for it no longer', async () => {
    const third = await startReplica();
    const { until, begun } = awaited();
    const running = callModern(third, 'slow_read', { until }, { headers: ANALYST });
    await begun();
    third.signal('SIGTERM');
    await vi.waitFor(async () => expect((await fetch(`${third.origin}/ready`)).status).toBe(503), WAIT);
    expect(third.isRunning()).toBe(true);
    await change('suspend');
    expect((await running).text).toContain(ENDED);
    expect(await third.ended).toBe(0);
  });

  it('calls over a pipe, while its process goes on and refuses others', async () => {
    writeFileSync(join(folder, 'parley.yaml'), stringify(config));
    const client = new Client({ name: 'piped', version: '1' });
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [file('../../../dist/bundle/cli.js'), 'stdio'],
        cwd: folder,
        env: { PATH: process.env['PATH'] ?? '', MCP_API_KEY: 'key-of-analyst', ...environment },
        stderr: 'ignore',
      }) as never,
    );
    try {
      const count = () =>
        client.callTool({ name: 'count_objects', arguments: { class_name: 'Post' } }).then(
          (answer) => answer.structuredContent,
          (error: unknown) => String(error),
        );
      expect(await count()).toMatchObject({ count: ROWS });
      const { until, begun } = awaited();
      const running = client.callTool({ name: 'slow_read', arguments: { until } });
      await begun();
      await change('suspend');
      expect(JSON.stringify(await running)).toContain(ENDED);
      expect(await count()).toContain(SAID);
      await expect(client.listTools()).rejects.toThrow(SAID);
      await change('resume');
      await vi.waitFor(async () => expect(await count()).toMatchObject({ count: ROWS }), WAIT);
    } finally {
      await client.close();
    }
  });
});

describe('a suspended agent', { timeout: 120_000 }, () => {
  it('decides no approval', async () => {
    await change('suspend');
    const answers = ['', '/some-id'].map((path) =>
      fetch(`${here.origin}/approvals${path}`, { headers: ANALYST }),
    );
    for (const answer of await Promise.all(answers))
      expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining(SAID)]);
  });

  it('is refused as the agent of anonymous callers as well', async () => {
    const open = await startService({
      config: {
        agents,
        auth: [
          { apiKey: 'key-of-chief', agent: 'chief' },
          { anonymous: true, agent: 'guest' },
        ],
        console: { operators: ['chief'] },
        policy: { unlistedClasses: 'allow' },
      },
      env: { MONGODB_URI: database.uri },
    });
    try {
      expect((await rpc(open, 'tools/list', {}, HOST)).status).toBe(200);
      await change('suspend', 'guest', open);
      const refused = await rpc(open, 'tools/list', {}, HOST);
      expect([refused.status, refused.body.error?.message]).toEqual([403, "agent 'guest' is suspended"]);
      expect((await rpc(open, 'tools/list', {}, key('chief'))).status).toBe(200);
    } finally {
      await open.stop();
    }
  });
});
