import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, type Service, startAndFail, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const SOON = { timeout: 60_000, interval: 50 };
const headers = { 'X-MCP-API-Key': 'editor' };
const env = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true' };
const configOf = (fields: readonly string[]) => ({
  server: { processes: 2 },
  logging: { format: 'json' },
  reload: { interval: 0.2 },
  metrics: { port: 0 },
  agents: { editor: { permissions: 'write', rateLimit: 1_000_000 } },
  auth: [{ apiKey: 'editor', agent: 'editor' }],
  plugins: [fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url))],
  policy: { unlistedClasses: 'allow', requireApprovalFor: [], classes: { Post: { fields } } },
});

const folder = makeFolder('processes');
let redis: RedisServer;
let service: Service;
beforeAll(async () => {
  redis = await startRedis();
  service = await startService({
    config: configOf(['title', 'status']),
    seed: POSTS_SEED,
    env: { ...env, REDIS_URL: redis.url },
  });
});
afterAll(async () => {
  await service?.stop();
  await redis?.stop();
});

interface Line {
  readonly pid: number;
  readonly context?: string;
  readonly message: string;
}
const lines = () =>
  service
    .output()
    .stderr.split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line);
/** The process that serves at each place now. */
const pids = () => {
  const found = new Map<string, number>();
  for (const { message } of lines()) {
    const [, number, pid] = /^process (\d) \(pid (\d+)\) serves$/.exec(message) ?? [];
    if (number !== undefined) found.set(number, Number(pid));
  }
  return found;
};
const together = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: 16 }, work));
const count = () => callTool(service, 'count_objects', { class_name: 'Post' }, headers);
async function open(): Promise<Record<string, string>> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  const answer = await rpc(service, 'initialize', params, headers);
  return { ...headers, 'Mcp-Session-Id': answer.headers.get('mcp-session-id') ?? '' };
}

describe('several processes of one service', () => {
  it('share the port and the embedded database', async () => {
    const answers = await together(count);
    expect(new Set(answers.map(({ data }) => data['count'])).size).toBe(1);
    await vi.waitFor(() => {
      const served = lines().filter(({ context }) => context === 'Audit');
      expect(new Set(served.map(({ pid }) => pid))).toEqual(new Set(pids().values()));
    }, SOON);
    expect(pids().size).toBe(2);
  });

  it('share sessions: one that any of them opened is known to all, and ended for all', async () => {
    const session = await open();
    const used = () => rpc(service, 'ping', {}, session);
    expect((await together(used)).map(({ status }) => status)).toEqual(Array(16).fill(200));
    await fetch(service.url, { method: 'DELETE', headers: session });
    expect((await together(used)).map(({ status }) => status)).toEqual(Array(16).fill(404));
  });

  it('answer one scrape with the metrics of all, each labelled with its process', async () => {
    const port = /Metrics on http:\/\/127\.0\.0\.1:(\d+)/.exec(service.output().stderr)?.[1];
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(text.match(/^parley_ready\{process="[12]"\} 1$/gm)?.toSorted()).toEqual([
      'parley_ready{process="1"} 1',
      'parley_ready{process="2"} 1',
    ]);
    expect(text.match(/^# TYPE parley_ready gauge$/gm)).toHaveLength(1);
  });

  it('lose no session when one of them is killed amid calls, and start it again', async () => {
    const session = await open();
    const before = pids();
    const until = join(folder, 'until');
    const running = together(() => callTool(service, 'slow_read', { until }, session).catch(() => null));
    await pause(500);
    process.kill(before.get('1') as number, 'SIGKILL');
    await vi.waitFor(() => expect(pids().get('1')).not.toBe(before.get('1')), SOON);
    writeFileSync(until, '');
    const answers = await running;
    // Those of the other process are answered as if nothing had happened.
    expect(answers.some((answer) => answer?.isError === false)).toBe(true);
    const again = await together(() => callTool(service, 'count_objects', { class_name: 'Post' }, session));
    expect(again.map(({ isError }) => isError)).toEqual(Array(16).fill(false));
    expect(pids().get('2')).toBe(before.get('2'));
  });

  it('all take over a configuration that changes', async () => {
    service.reconfigure(configOf(['title']));
    const served = () => lines().filter(({ message }) => message.includes('is served, policy version'));
    await vi.waitFor(
      () => expect(new Set(served().map(({ pid }) => pid))).toEqual(new Set(pids().values())),
      SOON,
    );
    const rows = await together(() =>
      callTool(service, 'query_class', { class_name: 'Post', limit: 1 }, headers),
    );
    for (const { text } of rows) expect(text).not.toContain('status');
  });

  it('finish running calls when the service is asked to end, which ends with 0', async () => {
    const until = join(folder, 'last');
    const running = together(() => callTool(service, 'slow_read', { until }, headers));
    await pause(1000);
    service.signal('SIGTERM');
    await pause(200);
    writeFileSync(until, '');
    expect((await running).map(({ isError }) => isError)).toEqual(Array(16).fill(false));
    expect(await service.ended).toBe(0);
  });
});

it('a process that read the configuration before it changed reloads it when it listens', async () => {
  const file = join(folder, 'starts');
  writeFileSync(file, '');
  const own = (fields: readonly string[]) => ({
    ...configOf(fields),
    metrics: {},
    reload: { watch: false },
    plugins: [fileURLToPath(new URL('../../fixtures/plugins/starting-slowly.mjs', import.meta.url))],
  });
  const first = service;
  service = await startService({
    config: own(['title', 'status']),
    seed: POSTS_SEED,
    env: { ...env, REDIS_URL: redis.url, STARTS_AFTER: file },
  });
  try {
    const before = pids();
    rmSync(file);
    rmSync(`${file}.begun`);
    process.kill(before.get('1') as number, 'SIGKILL');
    await vi.waitFor(() => expect(existsSync(`${file}.begun`)).toBe(true), SOON);
    service.reconfigure(own(['title']));
    service.signal('SIGHUP');
    const served = () => lines().filter(({ message }) => message.includes('is served, policy version'));
    await vi.waitFor(() => expect(served()).toHaveLength(1), SOON);
    writeFileSync(file, '');
    await vi.waitFor(() => expect(new Set(served().map(({ pid }) => pid)).size).toBe(2), SOON);
    expect(pids().get('1')).not.toBe(before.get('1'));
    const rows = await together(() =>
      callTool(service, 'query_class', { class_name: 'Post', limit: 1 }, headers),
    );
    for (const { text } of rows) expect(text).not.toContain('status');
  } finally {
    await service.stop();
    service = first;
  }
});

it('a process that still starts when the service is asked to end drains and ends as well', async () => {
  const own = await startService({
    config: { server: { processes: 2, drainTimeout: 1 }, logging: { format: 'json' } },
    env: { REDIS_URL: redis.url },
  });
  try {
    const [, pid] = /process 1 \(pid (\d+)\) serves/.exec(own.output().stderr) ?? [];
    process.kill(Number(pid), 'SIGKILL');
    await vi.waitFor(() => expect(own.output().stderr).toContain('starts again in 100 ms'), SOON);
    // It runs, and does not listen yet.
    await pause(300);
    own.signal('SIGTERM');
    const ended = await Promise.race([own.ended, pause(15_000, 'still runs')]);
    expect(ended).toBe(0);
    expect(own.output().stderr.match(/process 1 \(pid \d+\) serves/g)).toHaveLength(1);
  } finally {
    await own.stop();
  }
});

describe('what several processes cannot do stops the start', () => {
  const failed = (more: Record<string, unknown>, variables: Record<string, string>) =>
    startAndFail({ config: { ...more, server: { processes: 2 } }, env: variables });

  it('to share state without Redis', async () => {
    const { code, stderr } = await failed({}, {});
    expect(stderr).toContain('server.processes: several processes share sessions');
    expect(code).toBe(1);
  });

  it('to write one audit file', async () => {
    const audit = { sinks: [{ kind: 'file', path: './audit.jsonl' }] };
    const { code, stderr } = await failed({ audit }, { REDIS_URL: redis.url });
    expect(stderr).toContain('audit.sinks.0.kind: a file is written by one process');
    expect(code).toBe(1);
  });

  it('to listen where something listens already', async () => {
    const other = await startService();
    const { port } = new URL(other.url);
    const { code, stderr } = await failed({}, { REDIS_URL: redis.url, PORT: port });
    await other.stop();
    expect(stderr).toContain(`server.port: cannot listen on 127.0.0.1:${port}`);
    expect(code).toBe(1);
  });
});
