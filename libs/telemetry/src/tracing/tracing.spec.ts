import { afterEach, describe, expect, it } from 'vitest';
import { type Collector, startCollector } from '../contracts/index.js';
import { ServiceTelemetry } from '../service-telemetry.js';
import { environmentExports, openTracing, readSampling, type TraceOptions } from './open-tracing.js';
import type { Tracing } from './tracing.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const OTHER_TRACE = '1af7651916cd43dd8448eb211c80319c';
const createParent = (trace: string, flags: '00' | '01') => `00-${trace}-${SPAN}-${flags}`;

const names = {
  isTool: (name: string) => name === 'query_class',
  isPrompt: () => false,
  isAgent: () => false,
};
const arrival = { verb: 'POST', route: '/mcp', httpVersion: '1.1', requestId: 'r-1' };
const createMessage = (params: object) => ({
  method: 'tools/call',
  served: true,
  params,
  id: 1,
  era: 'modern' as const,
  version: '2026-07-28',
});

let collector: Collector;
let tracing: Tracing;

async function open(options: Partial<TraceOptions> = {}) {
  collector = await startCollector();
  const whole = { headers: {}, ratio: 1, callers: 'continue' as const, ...options };
  const opened = await openTracing({ ...whole, endpoint: collector.endpoint }, {}, '1.2.3', {
    warn: () => undefined,
  });
  if (!opened) throw new Error('no traces');
  tracing = opened;
  return new ServiceTelemetry({ tracing, metrics: null, names });
}

/** Reports one request with one message. @returns the trace id of the message */
function answer(telemetry: ServiceTelemetry, header: string | undefined, meta: object = {}) {
  const request = telemetry.request({
    ...arrival,
    headers: header === undefined ? {} : { traceparent: header },
  });
  const message = request.message(createMessage({ name: 'query_class', _meta: meta }));
  message.ends({ outcome: 'ok' });
  request.ends(200);
  return message.traceId;
}

async function readSent(): Promise<Collector> {
  await tracing.close();
  await collector.close();
  return collector;
}

describe('traces', () => {
  afterEach(() => tracing.close());

  it('continue that of the HTTP header, and say whose service they are of', async () => {
    const telemetry = await open({ headers: { 'x-collector-key': 'k' } });
    expect(answer(telemetry, createParent(TRACE, '01'))).toBe(TRACE);
    const { named, headers } = await readSent();
    const [edge] = named('POST /mcp', TRACE);
    const [message] = named('tools/call query_class', TRACE);
    expect(edge).toMatchObject({ parentSpanId: SPAN, kind: 2 });
    expect(message).toMatchObject({ parentSpanId: edge?.spanId, kind: 2 });
    expect(edge?.resource).toMatchObject({ 'service.name': 'parley', 'service.version': '1.2.3' });
    expect(headers[0]).toMatchObject({ 'x-collector-key': 'k' });
  });

  it.each([
    ['collector.example', 0],
    ['localhost', 1],
  ])('go to this machine under the name %s as often as the operator named it: %i', async (host, times) => {
    collector = await startCollector();
    const { port } = new URL(collector.endpoint);
    const asked = new Set<string>();
    const opened = await openTracing(
      {
        endpoint: `http://${host}:${port}/v1/traces`,
        headers: {},
        ratio: 1,
        callers: 'continue',
        resolve: (name) => {
          asked.add(name);
          return Promise.resolve(['127.0.0.1']);
        },
      },
      { OTEL_EXPORTER_OTLP_TIMEOUT: '1000' },
      '1.2.3',
      { warn: () => undefined },
    );
    if (!opened) throw new Error('no traces');
    tracing = opened;
    answer(new ServiceTelemetry({ tracing, metrics: null, names }), createParent(TRACE, '01'));
    await readSent();
    expect([...asked]).toEqual([host]);
    expect(collector.named('POST /mcp')).toHaveLength(times);
  });

  it('prefer that of the message, and link the request that carried it', async () => {
    const telemetry = await open();
    const meta = { traceparent: createParent(OTHER_TRACE, '01') };
    expect(answer(telemetry, createParent(TRACE, '01'), meta)).toBe(OTHER_TRACE);
    const { named } = await readSent();
    const [edge] = named('POST /mcp', TRACE);
    expect(named('tools/call query_class')).toMatchObject([
      { traceId: OTHER_TRACE, parentSpanId: SPAN, links: [{ traceId: TRACE, spanId: edge?.spanId }] },
    ]);
  });

  it('are kept by our own decision: no caller hides a call, and none makes us keep one', async () => {
    answer(await open(), createParent(TRACE, '00'));
    expect((await readSent()).named('POST /mcp', TRACE)).toHaveLength(1);
    answer(await open({ ratio: 0 }), createParent(TRACE, '01'), { traceparent: createParent(TRACE, '01') });
    expect((await readSent()).spans).toEqual([]);
  });

  it('follow the decision of callers where they are trusted', async () => {
    const telemetry = await open({ callers: 'follow', ratio: 0 });
    answer(telemetry, createParent(TRACE, '01'));
    answer(telemetry, createParent(OTHER_TRACE, '00'));
    answer(telemetry, undefined);
    expect(new Set((await readSent()).spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
  });

  it('have an id of their own for untrusted callers, with a link to theirs', async () => {
    const telemetry = await open({ callers: 'restart' });
    const own = answer(telemetry, createParent(TRACE, '01'), {
      traceparent: createParent(OTHER_TRACE, '01'),
    });
    expect([TRACE, OTHER_TRACE]).not.toContain(own);
    const { named } = await readSent();
    expect(named('POST /mcp', own)).toMatchObject([{ links: [{ traceId: TRACE }] }]);
    expect(named('tools/call query_class', own)).toMatchObject([{ links: [{ traceId: OTHER_TRACE }] }]);
  });

  it('of a task are its own, and name the request that began it', async () => {
    const telemetry = await open();
    const run = telemetry.background({ tool: 'query_class', began: createParent(TRACE, '01') });
    run.ends({ outcome: 'ok' });
    const { named } = await readSent();
    const [span] = named('tasks/run query_class');
    expect(span?.traceId).not.toBe(TRACE);
    expect(span).toMatchObject({ kind: 5, links: [{ traceId: TRACE, spanId: SPAN }] });
  });

  it('hold nothing that a client made up: no name, no id, no argument, no baggage', async () => {
    const telemetry = await open();
    const SECRET = 'SECRET-9f3';
    const request = telemetry.request({
      ...arrival,
      verb: SECRET,
      headers: { traceparent: SECRET, tracestate: `a=${SECRET}`, baggage: `user=${SECRET}`, cookie: SECRET },
    });
    const odd = {
      ...createMessage({ name: SECRET, arguments: { where: SECRET }, _meta: { baggage: SECRET } }),
      id: `${SECRET} !`,
    };
    const message = request.message(odd);
    const tool = message.tool(SECRET);
    tool.begins();
    tool.meter?.begins({ name: 'find', className: 'Post' })(0, new Error(SECRET));
    tool.trace?.noteLimit('Post', 'tenant', { orgId: SECRET });
    tool.ends({ success: false, duration_ms: 1, error_code: 'access_denied', gate: 'class' });
    message.ends({ outcome: 'tool_error' });
    request
      .message({ ...createMessage({}), method: SECRET, served: false, version: SECRET })
      .ends({ outcome: 'ok' });
    request.ends(200);
    const { text, spans } = await readSent();
    expect(spans.map(({ name }) => name).sort()).toEqual([
      '_OTHER',
      '_OTHER /mcp',
      'find Post',
      'tools/call _OTHER',
    ]);
    expect(text()).not.toContain(SECRET);
  });

  it('name the database beside the first one that an operation ran at', async () => {
    const telemetry = await open();
    const request = telemetry.request({ ...arrival, headers: {} });
    const message = request.message(createMessage({ name: 'query_class' }));
    const tool = message.tool('query_class');
    tool.begins();
    tool.meter?.begins({ name: 'find', className: 'Order' })(1);
    tool.meter?.begins({ name: 'find', className: 'Customer', database: 'crm' })(2);
    tool.ends();
    message.ends({ outcome: 'ok' });
    request.ends(200);
    const { named } = await readSent();
    expect(JSON.stringify(named('find Customer'))).toMatch(/"db.namespace"[^}]*crm/);
    expect(JSON.stringify(named('find Order'))).not.toContain('db.namespace');
  });

  it('stand below the active span for code that makes spans itself', async () => {
    const telemetry = await open();
    const request = telemetry.request({ ...arrival, headers: {} });
    const message = request.message({ ...createMessage({ name: 'query_class' }), correlationId: 'c-1' });
    const tool = message.tool('query_class');
    tool.begins();
    const fields = await tool.within(async () => {
      await Promise.resolve();
      tracing.api.trace.getTracer('plugin').startSpan('own work').end();
      return tracing.activeFields();
    });
    tool.ends();
    message.ends({ outcome: 'ok' });
    request.ends(200);
    const { named } = await readSent();
    const [handler] = named('execute_tool query_class');
    expect(named('own work')).toMatchObject([{ parentSpanId: handler?.spanId }]);
    expect(fields).toEqual({ trace_id: message.traceId, span_id: handler?.spanId, correlation_id: 'c-1' });
    expect(tracing.activeFields()).toEqual({});
  });

  it("are nobody's business when a collector is away", async () => {
    const telemetry = await open();
    await collector.close();
    expect(answer(telemetry, undefined)).toMatch(/^[0-9a-f]{32}$/);
    await expect(tracing.close()).resolves.toBeUndefined();
  });
});

describe('an application that makes traces itself', () => {
  it('gets the spans of Parley, without any option', async () => {
    const { trace } = await import('@opentelemetry/api');
    const sdk = await import('@opentelemetry/sdk-trace');
    const exporter = new sdk.InMemorySpanExporter();
    trace.setGlobalTracerProvider(
      new sdk.TracerProvider({ spanProcessors: [new sdk.SimpleSpanProcessor({ exporter })] }),
    );
    try {
      const options = {
        endpoint: null,
        headers: {},
        ratio: 1,
        callers: 'continue' as const,
      };
      const theirs = await openTracing(options, {}, '1', { warn: () => undefined });
      answer(new ServiceTelemetry({ tracing: theirs, metrics: null, names }), undefined);
      expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual([
        'tools/call query_class',
        'POST /mcp',
      ]);
    } finally {
      trace.disable();
    }
  });

  it('is the only way to any when nothing else asks for them', async () => {
    const options = { endpoint: null, headers: {}, ratio: 1, callers: 'continue' as const };
    expect(await openTracing(options, {}, '1', { warn: () => undefined })).toBeNull();
  });
});

describe('the environment', () => {
  it.each([
    [{}, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' }, true],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c:4318/v1/traces' }, true],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318', OTEL_TRACES_EXPORTER: 'none' }, false],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, true],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318', OTEL_SDK_DISABLED: 'true' }, false],
  ])('%j switches traces on: %s', (env, on) => {
    expect(environmentExports(env)).toBe(on);
  });

  it.each([
    [{}, { ratio: 0.5, callers: 'continue' }],
    [{ OTEL_TRACES_SAMPLER: 'always_off' }, { ratio: 0, callers: 'continue' }],
    [
      { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' },
      { ratio: 0.25, callers: 'continue' },
    ],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_on' }, { ratio: 1, callers: 'follow' }],
    [{ OTEL_TRACES_SAMPLER: 'jaeger_remote' }, { ratio: 0.5, callers: 'continue' }],
  ])('%j decides which are kept', (env, kept) => {
    expect(readSampling(env, { ratio: 0.5, callers: 'continue' })).toEqual(kept);
  });
});
