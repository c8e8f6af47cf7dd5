import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Collector, startCollector } from '#telemetry/contracts';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';
import { callTool, post, rpc, type Service, startAndFail, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const PAGE = readFileSync(new URL('../../../docs/operations/observability.md', import.meta.url), 'utf8');
const CLI = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));
const SLOW = fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url));

const KEY = 'a-key-that-no-line-may-hold';
const MARK = 'VALUE-NO-SPAN-MAY-HOLD';
const as = { 'X-MCP-API-Key': KEY };
const SPAN = 'b7ad6b7169203331';
const trace = (digit: string) => digit.repeat(32);
const parent = (traceId: string, flags = '01') => `00-${traceId}-${SPAN}-${flags}`;

let collector: Collector;
let service: Service;
let metricsUrl: string;

/** What the service has counted: lines without those of buckets, by name and labels. */
async function counted(): Promise<Map<string, number>> {
  const text = await (await fetch(metricsUrl)).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))] as const;
    }),
  );
}

const records = () =>
  service
    .output()
    .stderr.split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, string>);

beforeAll(async () => {
  collector = await startCollector();
  service = await startService({
    seed: POSTS_SEED,
    config: {
      ...POSTS_CONFIG,
      auth: [{ apiKey: KEY, agent: 'analyst' }],
      policy: { ...POSTS_CONFIG.policy, tokenCostPerMillionInput: 2 },
      plugins: [SLOW],
      metrics: { port: 0 },
      traces: { endpoint: collector.endpoint, headers: { 'x-collector': 'secret-of-the-collector' } },
      logging: { format: 'json', level: 'debug' },
    },
    env: { OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_SERVICE_NAME: 'newsroom' },
  });
  metricsUrl = /Metrics on (http:\S+\/metrics)/.exec(service.output().stderr)?.[1] ?? '';
});
afterAll(async () => {
  await service.stop();
  await collector.close();
});

describe('traces of the running service', () => {
  it('hold a request from the edge to the database, and its record the same trace', async () => {
    const traceId = trace('a');
    const args = { class_name: 'Post', where: { title: { $ne: MARK } }, limit: 3 };
    const headers = { ...as, traceparent: parent(traceId), tracestate: 'rojo=1', baggage: `user=${MARK}` };
    expect((await callTool(service, 'query_class', args, headers)).isError).toBe(false);
    await expect.poll(() => collector.named('POST /mcp', traceId)).toHaveLength(1);
    const only = (name: string) => {
      const [span, ...others] = collector.named(name, traceId);
      expect([name, span !== undefined, others]).toEqual([name, true, []]);
      return span as NonNullable<typeof span>;
    };
    const [edge, authenticate] = [only('POST /mcp'), only('authenticate')];
    const [message, handler] = [only('tools/call query_class'), only('execute_tool query_class')];
    const database = only('find Post');
    expect([edge, authenticate, message, handler, database].map(({ parentSpanId }) => parentSpanId)).toEqual([
      SPAN,
      edge.spanId,
      edge.spanId,
      message.spanId,
      handler.spanId,
    ]);
    expect(edge.resource).toMatchObject({ 'service.name': 'newsroom' });
    expect(message.attributes).toMatchObject({
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': 'query_class',
      'gen_ai.operation.name': 'execute_tool',
    });
    expect(message.events.map(({ attributes }) => attributes['parley.gate'])).toEqual(
      expect.arrayContaining(['rate_limit', 'tool', 'env_gates', 'budget', 'approval']),
    );
    expect(database.attributes).toMatchObject({
      'db.system.name': 'mongodb',
      'db.collection.name': 'Post',
      'db.operation.name': 'find',
    });
    const record = records().find(({ context, trace_id }) => context === 'Audit' && trace_id === traceId);
    expect(record).toMatchObject({ message: 'call', tool: 'query_class', request_id: 'scenario' });
  });

  it('take the context in `_meta` before that of the request, and none that is malformed', async () => {
    const call = (traceparent: unknown) =>
      rpc(
        service,
        'tools/call',
        { name: 'count_objects', arguments: { class_name: 'Post' }, _meta: { traceparent } },
        { ...as, traceparent: parent(trace('b')) },
      );
    await call(parent(trace('c')));
    await call(`${parent(trace('d'))}\r\nx: y`);
    await call({ toString: 1 });
    await expect.poll(() => collector.named('tools/call count_objects')).toHaveLength(3);
    const traces = collector.named('tools/call count_objects').map(({ traceId }) => traceId);
    expect(traces).toEqual([trace('c'), trace('b'), trace('b')]);
    expect(collector.named('tools/call count_objects', trace('c'))).toMatchObject([
      { links: [{ traceId: trace('b') }] },
    ]);
  });

  it('name the gate that refused, and no more for callers who are not admitted', async () => {
    await callTool(
      service,
      'get_object',
      { class_name: MARK, object_id: MARK },
      { ...as, traceparent: parent(trace('e'), '00') },
    );
    const refused = await rpc(
      service,
      'tools/list',
      {},
      { 'X-MCP-API-Key': MARK, traceparent: parent(trace('f')) },
    );
    expect(refused.status).toBe(401);
    await fetch(`${service.url}?${MARK}`, { method: 'PUT', headers: { traceparent: parent(trace('1')) } });
    await expect.poll(() => collector.named('PUT /mcp', trace('1'))).toHaveLength(1);
    await expect.poll(() => collector.named('POST /mcp', trace('e'))).toHaveLength(1);
    expect(collector.named('execute_tool get_object', trace('e'))[0]?.attributes).toMatchObject({
      'parley.error_code': 'invalid_argument',
      'error.type': 'invalid_argument',
    });
    const strangers = collector.spans.filter(({ traceId }) => traceId === trace('f'));
    expect(strangers.map(({ name }) => name).sort()).toEqual(['POST /mcp', 'authenticate']);
    expect(collector.named('PUT /mcp')[0]?.attributes).toMatchObject({ 'parley.check': 'verb' });
  });

  it('hold no value, no credential and no made-up name', () => {
    expect(collector.spans.length).toBeGreaterThan(10);
    for (const secret of [MARK, KEY, 'secret-of-the-collector'])
      expect(collector.text()).not.toContain(secret);
    expect(collector.headers[0]).toMatchObject({ 'x-collector': 'secret-of-the-collector' });
  });
});

describe('metrics of the running service', () => {
  it('are those of the page, each with its labels and no other', async () => {
    await callTool(service, 'nothing_has_this_name', {}, as);
    await fetch(service.url, { method: 'PUT' });
    const promised = new Map(
      [...PAGE.matchAll(/^\| `(parley_\w+)` +\| \w+ +\| ([^|]*) \|/gm)].map(([, name = '', labels = '']) => [
        name,
        // There is one database, which is not named.
        [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label).filter((label) => label !== 'database'),
      ]),
    );
    const text = await (await fetch(metricsUrl)).text();
    const declared = [...text.matchAll(/^# TYPE (parley_\w+) /gm)].map(([, name]) => name);
    expect(declared).toEqual([...promised.keys()]);
    for (const series of (await counted()).keys()) {
      const [, name = '', labels = ''] =
        /^(parley_\w+?)(?:_sum|_count|_bucket)?(?:\{(.*)\})?$/.exec(series) ?? [];
      if (!series.startsWith('parley_')) continue;
      const named = [...labels.matchAll(/(\w+)="/g)]
        .map(([, label]) => label)
        .filter((label) => label !== 'le');
      expect([name, named]).toEqual([name, promised.get(name)]);
    }
    expect(text).toContain('nodejs_eventloop_lag_seconds');
    for (const secret of [MARK, KEY, 'nothing_has_this_name', 'acme', 'analyst'])
      expect(text).not.toContain(secret);
  });

  it('count what was asked, what it cost, and what was read', async () => {
    const before = await counted();
    await callTool(service, 'query_class', { class_name: 'Post', limit: 4 }, as);
    for (let made = 0; made < 5; made += 1) {
      await callTool(service, `made_up_${made}`, {}, as);
      await rpc(service, `made/up/${made}`, {}, as);
    }
    const grown = async (series: string) => ((await counted()).get(series) ?? 0) - (before.get(series) ?? 0);
    // Scrapes within a moment of each other share one reading.
    await expect
      .poll(() =>
        grown(
          'parley_tool_calls_total{tool="_OTHER",outcome="refused",code="permission_denied",gate="tier"}',
        ),
      )
      .toBe(5);
    expect(
      await grown('parley_requests_total{method="_OTHER",era="legacy",transport="http",outcome="error"}'),
    ).toBe(5);
    expect(
      await grown('parley_tool_calls_total{tool="query_class",outcome="ok",code="none",gate="none"}'),
    ).toBe(1);
    // One more than asked for tells whether there are more.
    expect(await grown('parley_database_rows_total{operation="find"}')).toBe(5);
    expect(await grown('parley_result_tokens_total{tool="query_class"}')).toBeGreaterThan(0);
    expect(await grown('parley_result_cost_usd_total{tool="query_class"}')).toBeGreaterThan(0);
    const now = await counted();
    expect([now.get('parley_ready'), now.get('parley_dependency_up{dependency="mongodb"}')]).toEqual([1, 1]);
    expect([...now.keys()].filter((series) => series.startsWith('parley_policy_info'))).toHaveLength(1);
  });

  it('keep the names of methods for those that are served, whatever notifications clients invent', async () => {
    const notify = (method: string) => post(service, JSON.stringify({ jsonrpc: '2.0', method }), as);
    for (let made = 0; made < 60; made += 1)
      await notify(`notifications/x${'abcdefghij'.charAt(made / 10)}${'klmnopqrst'.charAt(made % 10)}`);
    await notify('notifications/initialized');
    await rpc(service, 'prompts/list', {}, as);
    const served = (method: string) =>
      `parley_requests_total{method="${method}",era="legacy",transport="http",outcome="ok"}`;
    await expect.poll(async () => (await counted()).has(served('notifications/initialized'))).toBe(true);
    const now = await counted();
    expect(now.has(served('prompts/list'))).toBe(true);
    expect(now.get(served('_OTHER'))).toBe(60);
    expect([...now.keys()].filter((series) => series.includes('notifications/x'))).toEqual([]);
  });

  it('are served nowhere else, and their listener serves nothing else', async () => {
    const origin = new URL(metricsUrl).origin;
    expect((await fetch(`${service.origin}/metrics`, { headers: as })).status).toBe(404);
    expect((await fetch(`${service.origin}/mcp/metrics`, { headers: as })).status).toBe(404);
    for (const path of ['/', '/mcp', '/health', '/ready', '/approvals', '/metrics/..%2f'])
      expect([path, (await fetch(origin + path)).status]).toEqual([path, 404]);
    expect((await post({ url: metricsUrl }, '{}')).status).toBe(405);
    expect(new URL(metricsUrl).hostname).toBe('127.0.0.1');
  });

  it('stop the start where they cannot be served', async () => {
    const { code, stderr } = await startAndFail({
      seed: POSTS_SEED,
      config: { ...POSTS_CONFIG, metrics: { port: Number(new URL(metricsUrl).port) } },
    });
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /metrics\.port: cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\): give metrics\.port another port/,
      ),
    ]);
  });
});

describe('the log of the running service', () => {
  it('is one JSON object to a line, whatever clients send, and nothing is on stdout', async () => {
    const forged = 'x\n{"level":"fatal","message":"forged"}\u001b[2J\u2028';
    await callTool(service, forged, {}, { ...as, 'Mcp-Session-Id': 's-1' });
    await expect.poll(() => service.output().stderr).toContain('forged');
    const lines = service.output().stderr.trimEnd().split('\n');
    const ready = lines.filter((line) => line.startsWith('Parley listening on '));
    expect(ready).toHaveLength(1);
    const parsed = lines
      .filter((line) => line !== ready[0])
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(parsed.filter(({ level }) => level === 'fatal')).toEqual([]);
    // eslint-disable-next-line no-control-regex
    expect(service.output().stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028]/);
    expect(parsed.find(({ tool }) => String(tool).includes('forged'))).toMatchObject({
      context: 'Audit',
      correlation_id: 's-1',
      trace_id: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
    });
    expect(parsed.find(({ message }) => message === 'started')).toMatchObject({
      context: 'Parley',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/) as string,
      database: 'embedded',
      configuration_digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      gates: expect.any(Array) as string[],
    });
    expect(service.output().stdout).toBe('');
  });

  it('has a line for each call, with the id of its request as its answer and its record have it', async () => {
    const answered = await post(
      service,
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'count_objects', arguments: { class_name: 'Post' } },
      }),
      { ...as, 'X-Request-Id': 'of.a-caller_1' },
    );
    expect(answered.headers.get('x-request-id')).toBe('of.a-caller_1');
    await expect.poll(() => service.output().stderr).toContain('of.a-caller_1');
    const [line] = records().filter(({ request_id }) => request_id === 'of.a-caller_1');
    const { tool, agent, class: className, outcome, rows, ms } = line as Record<string, unknown>;
    expect({ tool, className, outcome }).toEqual({
      tool: 'count_objects',
      className: 'Post',
      outcome: 'ok',
    });
    expect([typeof agent, typeof rows, typeof ms]).toEqual(['string', 'number', 'number']);
  });

  it.each([undefined, 'a b', 'x'.repeat(129), '{"a":1}'])(
    'takes no id that is absent, too long or of other characters, and makes one: %j',
    async (given) => {
      const paths = ['/mcp', '/health', '/ready', '/', '/tools', '/nowhere'];
      for (const path of paths) {
        const { headers } = await fetch(new URL(path, service.url), {
          headers: given === undefined ? {} : { 'X-Request-Id': given },
        });
        expect([path, headers.get('x-request-id')]).toEqual([
          path,
          expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f-]{27}$/),
        ]);
      }
    },
  );

  it('holds no credential', async () => {
    await rpc(service, 'tools/call', { name: KEY, arguments: {} }, as);
    await expect.poll(() => service.output().stderr).toContain('[redacted]');
    for (const secret of [KEY, 'secret-of-the-collector'])
      expect(service.output().stderr).not.toContain(secret);
  });
});

describe('a service on a pipe', () => {
  it('is traced as well, and says nothing but its protocol on stdout', async () => {
    const folder = makeFolder('pipe');
    const child = spawn(process.execPath, [CLI, 'stdio'], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.endpoint,
        OTEL_SERVICE_NAME: 'pipe',
      },
    });
    let stdout = '';
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    const _meta = { traceparent: parent(trace('9')) };
    child.stdin.end(
      `${JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/list', params: { _meta } })}\n`,
    );
    expect(await new Promise((resolve) => child.once('exit', resolve))).toBe(0);
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { id: number }).id),
    ).toEqual([5]);
    expect(collector.named('tools/list', trace('9'))).toMatchObject([
      { parentSpanId: SPAN, attributes: { 'network.transport': 'pipe', 'jsonrpc.request.id': '5' } },
    ]);
  });
});

describe('a service that ends', () => {
  it('is not ready while it finishes what it has begun, and sends its last spans', async () => {
    const file = join(tmpdir(), `parley-until-${process.pid}`);
    const ending = await startService({
      seed: POSTS_SEED,
      config: { ...POSTS_CONFIG, plugins: [SLOW] },
      env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.endpoint, OTEL_SERVICE_NAME: 'ending' },
    });
    const running = callTool(ending, 'slow_read', { until: file });
    const ready = async () => {
      const answer = await fetch(`${ending.origin}/ready`);
      return [answer.status, ((await answer.json()) as { status: string }).status];
    };
    expect(await ready()).toEqual([200, 'ready']);
    process.kill(ending.pid, 'SIGTERM');
    await expect.poll(ready, { timeout: 4_000, interval: 20 }).toEqual([503, 'draining']);
    expect((await fetch(`${ending.origin}/health`)).status).toBe(200);
    writeFileSync(file, '');
    expect((await running).isError).toBe(false);
    await expect.poll(() => ending.isRunning(), { timeout: 20_000 }).toBe(false);
    expect(await ending.stop()).toBe(0);
    rmSync(file);
    const last = collector.named('tools/call slow_read');
    expect(last.map(({ resource }) => resource['service.name'])).toEqual(['ending']);
  });
});
