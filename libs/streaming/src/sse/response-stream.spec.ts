import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { call, EVENTS, openSession, until } from '../testing/calls.js';
import { type Arriving, edgeUnderTest } from '../testing/edge-under-test.js';
import { initialize, modern, MODERN_META, ping } from '../testing/requests.js';

const edge = await edgeUnderTest();
const lively = await edgeUnderTest({ heartbeatInterval: 60 });
const small = await edgeUnderTest({ maxConcurrentDispatchers: 1 });
afterEach(() => {
  for (const { tools } of [edge, lively, small]) {
    tools.release();
    tools.work = () => ({});
  }
});
afterAll(() => Promise.all([edge.stop(), lively.stop(), small.stop()]));

const readAnswered = async (arriving: Arriving) => {
  await arriving.over;
  return arriving.messages();
};

describe('an answer as a stream, up to 2025-06-18', () => {
  it('has the headers that prevent buffering by proxies', async () => {
    const arriving = await edge.open({ headers: EVENTS, body: call('echo') });
    expect(arriving.status).toBe(200);
    expect(arriving.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      connection: 'keep-alive',
      'x-accel-buffering': 'no',
    });
    expect(arriving.headers).not.toHaveProperty('mcp-session-id');
  });

  it.each([ping('a'), { jsonrpc: '2.0', id: 2, method: 'tools/list' }, call('echo'), call('nonsense')])(
    'is the same envelope in one message frame: %j',
    async (body) => {
      const named = { 'X-Request-Id': 'one' };
      const arriving = await edge.open({ headers: { ...EVENTS, ...named }, body });
      const whole = await edge.ask({ headers: named, body });
      await arriving.over;
      expect(arriving.text()).toBe(`event: message\ndata: ${whole.text}\n\n`);
    },
  );

  it('names the session of initialize in its headers', async () => {
    const arriving = await edge.open({ headers: EVENTS, body: initialize() });
    expect(arriving.headers['mcp-session-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(await readAnswered(arriving)).toMatchObject([
      { id: 0, result: { protocolVersion: '2025-06-18' } },
    ]);
  });

  it('carries an error with status 200', async () => {
    const arriving = await edge.open({ headers: EVENTS, body: { jsonrpc: '2.0', id: 4, method: 'nope' } });
    expect(arriving.status).toBe(200);
    expect(await readAnswered(arriving)).toEqual([
      { jsonrpc: '2.0', id: 4, error: { code: -32601, message: 'Method not found: nope' } },
    ]);
  });

  it('is JSON for requests that are refused before the call, and for notifications', async () => {
    const refused = await edge.ask({ headers: { ...EVENTS, 'X-MCP-API-Key': 'wrong' }, body: ping() });
    expect([refused.status, refused.headers['content-type']]).toEqual([401, 'application/json']);
    const sent = await edge.ask({ headers: EVENTS, body: { jsonrpc: '2.0', method: 'notifications/x' } });
    expect([sent.status, sent.text, sent.headers['content-type']]).toEqual([202, '', 'application/json']);
  });

  it('sends progress under the token of the request, and the answer last', async () => {
    edge.tools.work = ({ progress }) => {
      progress({ progress: 1, total: 2, message: 'half' });
      progress({ progress: 2 });
      return { done: true };
    };
    const arriving = await edge.open({ headers: EVENTS, body: call('work', 9, { progressToken: 'p1' }) });
    expect(await readAnswered(arriving)).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 'p1', progress: 1, total: 2, message: 'half' },
      },
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p1', progress: 2 } },
      expect.objectContaining({ id: 9, result: expect.objectContaining({ isError: false }) as object }),
    ]);
  });

  it.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'])(
    'never carries progress that the request of %s did not ask for, only comments',
    async (version) => {
      lively.tools.work = async ({ progress }) => {
        progress({ progress: 1 });
        await new Promise((resolve) => setTimeout(resolve, 60));
        progress({ progress: 2 });
      };
      const meta =
        version === '2026-07-28' ? { 'io.modelcontextprotocol/protocolVersion': version } : undefined;
      const headers = { ...EVENTS, 'MCP-Protocol-Version': version };
      const arriving = await lively.open({ headers, body: call('work', 1, meta) });
      await arriving.over;
      expect(arriving.text()).not.toContain('notifications/progress');
    },
  );

  it.each([
    ['2025-06-18', [1, 3]],
    ['2024-11-05', [1, 3, 3.0000001, 3.0000002]],
  ])('sends progress that increases under a token, in %s', async (version, sent) => {
    edge.tools.work = ({ progress }) => [1, 3, 3, 2].forEach((step) => progress({ progress: step }));
    const headers = { ...EVENTS, 'MCP-Protocol-Version': version };
    const messages = await readAnswered(
      await edge.open({ headers, body: call('work', 1, { progressToken: 7 }) }),
    );
    expect(messages.slice(0, -1).map(({ params }) => (params as { progress: number }).progress)).toEqual(
      sent,
    );
  });

  it('ignores members of progress that are null or of another type', async () => {
    const reports: unknown[] = [
      { progress: 1, total: null, message: null },
      { progress: 2, total: 'x', message: 5 },
      { progress: 3, total: 4, message: 'three' },
    ];
    edge.tools.work = ({ progress }) => {
      for (const report of reports) progress(report as never);
      return { worked: true };
    };
    await edge.ask({ body: call('work') });
    const body = call('work', 1, { progressToken: 'p' });
    const messages = await readAnswered(await edge.open({ headers: EVENTS, body }));
    expect(messages.slice(0, -1).map(({ params }) => params)).toEqual([
      { progressToken: 'p', progress: 1 },
      { progressToken: 'p', progress: 2 },
      { progressToken: 'p', progress: 3, total: 4, message: 'three' },
    ]);
    expect(JSON.stringify(messages.at(-1))).toContain('worked');
  });

  it.each([
    { progress: Number.NaN },
    { progress: '1' },
    { progress: Infinity, total: 1 },
    {},
    null,
    undefined,
    5,
  ])('sends no progress that is no number, which is an internal error: %j', async (report) => {
    edge.tools.work = ({ progress }) => progress(report as never);
    const body = call('work', 1, { progressToken: 'p' });
    const messages = await readAnswered(await edge.open({ headers: EVENTS, body }));
    expect(messages).toHaveLength(1);
    expect(messages[0]).toMatchObject({ error: { code: -32603 } });
  });

  it('beats with the client’s token until the tool reports, and never again', async () => {
    let first: Arriving | undefined;
    let second: Arriving | undefined;
    lively.tools.work = async ({ progress, transport: { requestId } }) => {
      if (requestId === 'second') return until(() => first?.isOver() ?? false);
      await until(() => (first?.messages().length ?? 0) >= 2);
      progress({ progress: 0 });
      progress({ progress: 0.5 });
      // Another stream's beats are the clock.
      await until(() => (second?.messages().length ?? 0) >= 4);
    };
    first = await lively.open({ headers: EVENTS, body: call('work', 'first', { progressToken: 'mine' }) });
    await until(() => (first?.messages().length ?? 0) >= 4);
    second = await lively.open({ headers: EVENTS, body: call('work', 'second', { progressToken: 'other' }) });
    const messages = await readAnswered(first);
    const beats = messages.slice(0, -3) as { method: string; params: Record<string, unknown> }[];
    expect(beats.length).toBeGreaterThanOrEqual(2);
    const reports = messages.slice(-3, -1).map(({ params }) => params as { progress: number });
    const received = [
      ...beats.map(({ params }) => Number(params.progress)),
      ...reports.map((one) => one.progress),
    ];
    expect(received).toEqual([...new Set(received)].sort((one, other) => one - other));
    for (const { params } of beats) {
      expect(params.progressToken).toBe('mine');
      expect(params).not.toHaveProperty('total');
      expect(params.progress).toBeLessThan(0.001);
      expect(params.message).toMatch(/^running for \d+\.\d s$/);
    }
    expect(reports[1]).toMatchObject({ progress: 0.5 });
    expect(messages.at(-1)).toMatchObject({ id: 'first', result: { isError: false } });
    await second.over;
  });

  it('announces changed lists while the call runs', async () => {
    edge.tools.work = async () => {
      edge.listChanges.next('tools');
      edge.listChanges.next('prompts');
    };
    const messages = await readAnswered(await edge.open({ headers: EVENTS, body: call('work') }));
    expect(messages.slice(0, -1)).toEqual([
      { jsonrpc: '2.0', method: 'notifications/tools/list_changed' },
      { jsonrpc: '2.0', method: 'notifications/prompts/list_changed' },
    ]);
  });

  it('answers busy, with the id, when the maximum number of streams is open; JSON answers continue', async () => {
    const first = await small.open({ headers: EVENTS, body: call('wait') });
    await until(() => small.edge.activeDispatcherCount === 1);
    const second = await small.ask({ headers: EVENTS, body: call('echo', 'b') });
    expect([second.status, second.json()]).toEqual([
      503,
      { jsonrpc: '2.0', id: 'b', error: { code: -32000, message: 'server busy' } },
    ]);
    expect((await small.ask({ body: call('echo') })).status).toBe(200);
    small.tools.release();
    await first.over;
    expect(small.edge.activeDispatcherCount).toBe(0);
    expect((await small.ask({ headers: EVENTS, body: call('echo') })).status).toBe(200);
  });

  it('ends with an answer whatever the tool runner does', async () => {
    edge.tools.work = () => Promise.reject(new Error('password of db.internal'));
    const arriving = await edge.open({ headers: EVENTS, body: call('work', 3) });
    expect(await readAnswered(arriving)).toEqual([
      { jsonrpc: '2.0', id: 3, error: { code: -32603, message: 'Internal error' } },
    ]);
  });
});

describe('an answer of 2025-11-25', () => {
  it('sends log lines from the level the session asked for, on any of its requests', async () => {
    const headers = { ...(await openSession(edge, '2025-11-25')), ...EVENTS };
    edge.tools.work = ({ log }) => {
      for (const level of ['debug', 'info', 'error'] as const) log?.({ level, data: level, logger: 'test' });
    };
    const levels = async () => {
      const messages = await readAnswered(await edge.open({ headers, body: call('work') }));
      return messages.slice(0, -1).map(({ method, params }) => [method, (params as { level: string }).level]);
    };
    expect(await levels()).toEqual([
      ['notifications/message', 'info'],
      ['notifications/message', 'error'],
    ]);
    const body = { jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'error' } };
    expect((await edge.ask({ headers, body })).text).toContain('"result":{}');
    expect(await levels()).toEqual([['notifications/message', 'error']]);
  });

  it('sends progress only where it was requested, and comments as keep-alives', async () => {
    const headers = { ...(await openSession(lively, '2025-11-25')), ...EVENTS };
    let arriving: Arriving | undefined;
    lively.tools.work = async ({ progress }) => {
      progress({ progress: 1 });
      await until(() => arriving?.frames().some(({ comment }) => comment === 'keep-alive') ?? false);
    };
    arriving = await lively.open({ headers, body: call('work') });
    expect(await readAnswered(arriving)).toMatchObject([{ id: 1, result: { isError: false } }]);
  });
});

describe('an answer of 2026-07-28', () => {
  const createRequest = (meta: object = {}) => {
    const request = modern('tools/call', { name: 'work', arguments: {}, _meta: { ...MODERN_META, ...meta } });
    return { ...request, headers: { ...request.headers, ...EVENTS } };
  };

  it('is one JSON body when no message precedes it', async () => {
    const answer = await edge.ask(createRequest());
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.json()).toMatchObject({ id: 7, result: { resultType: 'complete' } });
  });

  it('becomes a stream without ids at the first message, the answer last', async () => {
    edge.tools.work = ({ progress }) => progress({ progress: 1 });
    const arriving = await edge.open(createRequest({ progressToken: 'p' }));
    expect(arriving.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
    });
    expect(await readAnswered(arriving)).toMatchObject([
      {
        method: 'notifications/progress',
        params: { progressToken: expect.any(String) as string, progress: 1 },
      },
      { id: 7, result: { resultType: 'complete' } },
    ]);
    expect(arriving.text()).not.toContain('id: ');
  });

  it('contains nothing that was not requested: no progress without a token, no log line without a level', async () => {
    edge.tools.work = ({ progress, log }) => {
      progress({ progress: 1 });
      log?.({ level: 'emergency', data: 'x' });
    };
    expect((await edge.ask(createRequest())).headers['content-type']).toBe('application/json');
    const level = { 'io.modelcontextprotocol/logLevel': 'warning' };
    edge.tools.work = ({ log }) => {
      log?.({ level: 'info', data: 'quiet' });
      log?.({ level: 'critical', data: 'loud' });
    };
    expect(await readAnswered(await edge.open(createRequest(level)))).toMatchObject([
      { method: 'notifications/message', params: { level: 'critical', data: 'loud' } },
      { id: 7 },
    ]);
  });

  it('drops messages beside it for a client that accepts no stream', async () => {
    edge.tools.work = ({ progress }) => progress({ progress: 1 });
    const request = createRequest({ progressToken: 'p' });
    const answer = await edge.ask({
      ...request,
      headers: { ...request.headers, Accept: 'application/json' },
    });
    expect(answer.json()).toMatchObject({ id: 7, result: { isError: false } });
  });

  it('never carries a request to the client', async () => {
    let refused: unknown;
    edge.tools.work = async ({ transport: { link } }) => {
      refused = await link?.request('elicitation/create', {}, 50).catch((error: unknown) => error);
    };
    const answer = await edge.ask(createRequest());
    expect(refused).toMatchObject({ reason: 'no-session' });
    expect(answer.headers['content-type']).toBe('application/json');
  });
});
