import 'reflect-metadata';
import { createHmac } from 'node:crypto';
import { readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { type AuditEntry, type AuditQuery, AuditTrail } from '#audit';
import { type ResourceCall, type ResourceProvider, ResourceRegistry } from '#dispatcher';
import { Prompt, type PromptCall } from '@parley/server';
import { loadConfig } from '#config';
import { openDatabase } from '#parley/instance';
import { startHttpService } from '../../../src/http-service.js';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, startAndFail, startService } from '../../support/service.js';
import { listenFor, makeFolder } from '../../support/started.js';
import { runCommand } from '../../support/terminal.js';

const WAIT = { timeout: 30_000, interval: 25 };
const HOOK_SECRET = 'a secret of the hook';
const GATES = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'on', PARSE_AGENT_ALLOW_RAW_CRUD: 'on' };

/** What the console asks. */
@Injectable()
class Operator {
  static trail: AuditTrail;
  constructor(@Inject(AuditTrail) trail: AuditTrail) {
    Operator.trail = trail;
  }
}

/** Reads rows outside tools, as an application's prompts and resources may. */
@Injectable()
class Weekly implements ResourceProvider {
  readonly scheme = 'weekly';
  constructor(@Inject(ResourceRegistry) resources: ResourceRegistry) {
    resources.register(this);
  }

  @Prompt({ name: 'weekly', description: 'The week in posts.', arguments: [] })
  async weekly({ records }: PromptCall) {
    return `${(await records.find('Post', { limit: 2 })).length} posts`;
  }

  list() {
    return [];
  }

  async read(uri: string, { records }: ResourceCall) {
    return [{ uri, mimeType: 'text/plain', text: JSON.stringify(await records.find('Post', { limit: 1 })) }];
  }
}

const folder = makeFolder('audit');
const LOG = join(folder, 'records.jsonl');
const recorded = () =>
  readFileSync(LOG, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEntry & Record<string, unknown>);
const latest = () => recorded().at(-1)!;

const hook = { isUp: true, bodies: [] as string[], forged: 0 };
let service: { url: string; stop: () => Promise<unknown> };
let stopped = false;
beforeAll(async () => {
  const hookServer = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const [, seconds, given] =
        /^t=(\d+),v1=(\w+)$/.exec(String(request.headers['x-parley-signature'])) ?? [];
      const expected = createHmac('sha256', HOOK_SECRET).update(`${seconds}.${body}`).digest('hex');
      if (given !== expected) hook.forged += 1;
      else if (hook.isUp) hook.bodies.push(body);
      response.writeHead(hook.isUp ? 204 : 503).end();
    });
  });
  const { origin } = await listenFor(hookServer);
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(POSTS_SEED));
  writeFileSync(
    join(folder, 'parley.yaml'),
    stringify({
      server: { port: 0 },
      database: { uri: 'embedded', seed: './seed.json' },
      agents: {
        reader: { tenantId: 'acme', rateLimit: 1_000_000 },
        writer: { tenantId: 'acme', permissions: 'admin', rateLimit: 1_000_000 },
        client: { clientMode: true, identity: { session: 'caller' }, tenantId: 'acme' },
      },
      auth: ['reader', 'writer', 'client'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: POSTS_POLICY,
      audit: {
        chainKey: 'a key for the chain that only the operator has',
        sinks: [
          { kind: 'file', path: './records.jsonl', fsync: 'always' },
          { kind: 'mongodb' },
          { kind: 'webhook', url: `${origin}/hook`, secret: HOOK_SECRET, onFailure: 'buffer' },
        ],
      },
    }),
  );
  const loaded = loadConfig({}, folder);
  const database = await openDatabase(loaded.config);
  const running = await startHttpService(loaded, database.connection, GATES, [Operator, Weekly]);
  // In this process the service would log into the test's own output.
  Logger.overrideLogger(false);
  service = {
    url: running.url,
    stop: async () => {
      if (stopped) return;
      stopped = true;
      await running.close();
      await database.close();
    },
  };
});
afterAll(async () => {
  await service.stop();
});

const key = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const call = (agent: string, tool: string, args: object, headers = {}) =>
  callTool(service, tool, args as Record<string, unknown>, { ...key(agent), ...headers });
const found = async (query: AuditQuery) => (await Operator.trail.search(query)).entries;

async function parley(...args: string[]) {
  const { code, stdout, stderr } = await runCommand(args, '', { cwd: folder });
  return { code, stdout: stdout + stderr };
}

describe('the record of a call', () => {
  it('is kept before the call is answered, with what was used and under which policy', async () => {
    const where = { likes: { $gt: 0 } };
    await call(
      'reader',
      'query_class',
      { class_name: 'Post', where, limit: 2 },
      { 'Mcp-Session-Id': 'corr-1' },
    );
    const entry = latest();
    expect(entry).toMatchObject({
      type: 'tool_call',
      tool: 'query_class',
      agent_name: 'reader',
      tenant_id: 'acme',
      success: true,
      args_keys: ['class_name', 'limit'],
      class_name: 'Post',
      args_digest: expect.stringMatching(/^[0-9a-f]{8}:[0-9a-f]{32}$/),
      policy_version: expect.any(String),
    });
    expect(entry['rows']).toBeGreaterThan(0);
    expect(entry['database_ms']).toBeGreaterThan(0);
    expect(entry['result_size']).toBeGreaterThan(0);
    await call('reader', 'query_class', { limit: 2, where, class_name: 'Post' });
    expect(latest()['args_digest']).toBe(entry['args_digest']);
    await call('reader', 'query_class', { class_name: 'Post', where, limit: 3 });
    expect(latest()['args_digest']).not.toBe(entry['args_digest']);
  });

  it('names the gate of a refusal, and who was not admitted', async () => {
    await call('reader', 'query_class', { class_name: 'Contract' });
    expect(latest()).toMatchObject({
      success: false,
      gate: 'class',
      denial_kind: 'hidden_class',
      class_name: 'Contract',
    });
    await call('nobody', 'query_class', { class_name: 'Post' });
    await vi.waitFor(() => expect(latest()).toMatchObject({ type: 'authentication', success: false }), WAIT);
  });

  it('never holds a value, a token or a key, whatever was asked and whatever failed', async () => {
    const session = { 'X-Parse-Session-Token': `r:${SECRET}` };
    const value = 'V4LUE-of-an-argument';
    const asked: [string, string, object][] = [
      ['reader', 'query_class', { class_name: 'Post', where: { title: value, ssn: value } }],
      ['reader', 'query_class', { class_name: 'Post', where: { $where: value } }],
      ['reader', 'aggregate', { class_name: 'Post', pipeline: [{ $match: { title: value } }] }],
      ['reader', 'get_object', { class_name: 'Post', object_id: value }],
      ['reader', 'no_such_tool', { password: value }],
      ['client', 'query_class', { class_name: 'Post', where: { [`${'a'.repeat(10)}`]: value } }],
      ['client', 'query_class', { class_name: 'Post', limit: value, session_token: value }],
      ['writer', 'create_object', { class_name: 'Post', data: { title: value, orgId: value } }],
      ['writer', 'update_object', { class_name: 'Post', object_id: value, data: { objectId: value } }],
    ];
    for (const [agent, tool, args] of asked) await call(agent, tool, args, session);
    await callTool(service, 'list_tools', {}, { 'X-MCP-API-Key': `wrong-${value}` });
    const text = readFileSync(LOG, 'utf8');
    for (const withheld of [value, SECRET, 'key-of-', 'wrong-']) expect(text).not.toContain(withheld);
    expect(recorded().filter(({ type }) => type === 'tool_call').length).toBeGreaterThanOrEqual(asked.length);
  });

  it('is one line, whatever the name of the tool or an argument', async () => {
    const calls = () => recorded().filter(({ type }) => type === 'tool_call');
    const before = calls().length;
    const forged = `x\n{"type":"tool_call","hash":"00"}\u2028\u001b[2J`;
    await call('reader', forged, { [forged]: 1, ['k'.repeat(100_000)]: 2 });
    expect(calls()).toHaveLength(before + 1);
    expect(JSON.stringify(calls().at(-1)).length).toBeLessThan(10_000);
    expect(calls().at(-1)?.tool).toBe(forged);
  });

  it('is found by the operator in the database, and sent to the webhook', async () => {
    expect((await found({ correlationId: 'corr-1' }))[0]).toMatchObject({ tool: 'query_class' });
    expect(await found({ code: 'access_denied', gate: 'class' })).toHaveLength(1);
    expect(Operator.trail.reach).toBe('kept');
    await vi.waitFor(() => {
      const delivered = hook.bodies.flatMap(
        (body) => (JSON.parse(body) as { records: AuditEntry[] }).records,
      );
      expect(delivered.map(({ hash }) => hash)).toEqual(recorded().map(({ hash }) => hash));
    }, WAIT);
    expect(hook.forged).toBe(0);
  });
});

/** Rows that leave otherwise than as the result of a tool. */
const OTHER_READS = [
  ['prompts/get', { name: 'weekly' }, 'prompt:weekly', 2],
  ['resources/read', { uri: 'weekly://latest' }, 'resource:weekly', 1],
] as const;

describe('rows that an application reads for a prompt or a resource', () => {
  it.each(OTHER_READS)('are recorded like those of a call: %s', async (method, params, tool, rows) => {
    const { body } = await rpc(service, method, params, key('reader'));
    expect(body).toHaveProperty('result');
    expect(latest()).toMatchObject({ type: 'tool_call', tool, rows, success: true, agent_name: 'reader' });
  });

  it('leave no record where none is read', async () => {
    const before = recorded().length;
    await rpc(service, 'prompts/get', { name: 'parse_conventions' }, key('reader'));
    expect(recorded()).toHaveLength(before);
  });
});

describe('while records cannot be kept', () => {
  const taken = join(folder, 'taken.jsonl');
  const breakLog = () => {
    renameSync(LOG, taken);
    symlinkSync('/dev/null', LOG);
  };
  const mendLog = async () => {
    unlinkSync(LOG);
    renameSync(taken, LOG);
    await vi.waitFor(
      async () => expect((await fetch(new URL('/ready', service.url))).status).toBe(200),
      WAIT,
    );
    // The first record after an outage reports it.
    await call('reader', 'count_objects', { class_name: 'Post' });
  };

  it('the result of a read is withheld, no call runs, and nothing internal is shown', async () => {
    breakLog();
    const withheld = await call('reader', 'query_class', { class_name: 'Post', limit: 1 });
    expect([withheld.isError, withheld.code]).toEqual([true, 'audit_unavailable']);
    expect(withheld.text).toContain('may be repeated');
    const refused = await call('reader', 'query_class', { class_name: 'Post', limit: 1 });
    expect(refused.code).toBe('audit_unavailable');
    expect(refused.text).toContain('was not run');
    for (const [method, params] of OTHER_READS) {
      const { body } = await rpc(service, method, params, key('reader'));
      expect(JSON.stringify(body)).toContain('this one was not run');
    }
    for (const { wire } of [withheld, refused])
      expect(wire).not.toMatch(/records\.jsonl|symbolic|parley-audit-|objectId/);
    const ready = await fetch(new URL('/ready', service.url));
    expect([ready.status, await ready.json()]).toMatchObject([503, { dependencies: { audit: 'down' } }]);
    await mendLog();
    const [outage] = await found({ type: 'outage' });
    expect(outage).toMatchObject({ success: false, dropped: 0 });
    expect((await fetch(new URL('/ready', service.url))).status).toBe(200);
  });

  it('a write that ran is never reported as one that did not, and its record comes later', async () => {
    breakLog();
    const written = await call('writer', 'create_object', {
      class_name: 'Post',
      data: { title: 'kept', orgId: 'acme' },
    });
    expect(written.code).toBe('audit_unavailable');
    expect(written.text).toContain('What it changed stays changed');
    await mendLog();
    const { text } = await call('reader', 'query_class', { class_name: 'Post', where: { title: 'kept' } });
    expect(text).toContain('kept');
    expect(await found({ tool: 'create_object', outcome: 'success' })).toHaveLength(1);
  });

  it('calls go on where the place is one that buffers, and it receives everything later, in order', async () => {
    hook.isUp = false;
    hook.bodies.length = 0;
    for (let index = 0; index < 5; index += 1)
      expect((await call('reader', 'count_objects', { class_name: 'Post' })).isError).toBe(false);
    expect((await fetch(new URL('/ready', service.url))).status).toBe(200);
    hook.isUp = true;
    const seqs = () =>
      hook.bodies.flatMap((body) =>
        (JSON.parse(body) as { records: AuditEntry[] }).records.map(({ seq }) => seq),
      );
    await vi.waitFor(() => expect(seqs().at(-1)).toBe(latest().seq), WAIT);
    expect(seqs()).toEqual(seqs().toSorted((a, b) => a - b));
    expect(seqs().length).toBeGreaterThanOrEqual(5);
  });
});

describe('the command line', () => {
  it('verifies what was written, names the first record that was changed, and finds records', async () => {
    await service.stop();
    expect(latest()['type']).toBe('chain_end');
    const intact = await parley('audit', 'verify');
    expect(intact).toMatchObject({ code: 0 });
    expect(intact.stdout).toContain(`${recorded().length} records hold`);
    const search = await parley('audit', 'search', '--gate', 'class', '--outcome', 'failure');
    expect(search.stdout).toContain('access_denied');
    expect(search.stdout.split('\n')).toHaveLength(3);
    const lost = await parley('audit', 'search', LOG, '--type', 'outage');
    expect(lost.stdout).toMatch(/ \d+ calls refused and \d+ records left out since \d{4}-\S+Z$/m);
    const asJson = await parley('audit', 'search', LOG, '--type', 'outage', '--json');
    expect((JSON.parse(asJson.stdout) as { entries: unknown[] }).entries.length).toBeGreaterThan(0);
    const lines = readFileSync(LOG, 'utf8').split('\n');
    writeFileSync(LOG, lines.with(3, lines[3]!.replace('"success":', '"success" :')).join('\n'));
    const changed = await parley('audit', 'verify', LOG);
    expect(changed.code).toBe(1);
    expect(changed.stdout).toContain(`ALTERED ${LOG}:4: record 3 is not what was sealed`);
  });
});

describe('a file of audit records', () => {
  const settings = {
    seed: POSTS_SEED,
    config: {
      agents: { reader: {} },
      auth: [{ apiKey: 'reader-key', agent: 'reader' }],
      policy: POSTS_POLICY,
      audit: { sinks: [{ kind: 'file', path: join(folder, 'one-writer.jsonl') }] },
    },
  };

  it('has one writer: a second service with its path does not start, and doctor names the first', async () => {
    const first = await startService(settings);
    const held = `one-writer.jsonl is written by process ${first.pid}`;
    const { code, stderr } = await startAndFail(settings);
    expect([code, stderr]).toEqual([1, expect.stringContaining(held)]);
    expect(stderr).toContain('audit.sinks.0.path');
    const doctor = await runCommand(['doctor', '--config', first.file], '', { cwd: dirname(first.file) });
    expect(doctor.stdout).toContain('audit.files');
    expect(doctor.stdout).toContain(held);
    await first.kill();
    // What a killed process leaves keeps nobody from starting.
    const next = await startService(settings);
    expect(await next.stop()).toBe(0);
  }, 120_000);
});
