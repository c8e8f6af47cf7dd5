import { afterAll, describe, expect, it } from 'vitest';
import { edgeUnderTest, type EdgeUnderTest } from '../testing/edge-under-test.js';
import { initialize, modern, ping } from '../testing/requests.js';

const usual = await edgeUnderTest();
const strict = await edgeUnderTest({ sessions: 'strict' });
afterAll(() => Promise.all([usual.stop(), strict.stop()]));

const as = (key: string, session?: string) => ({
  'X-MCP-API-Key': key,
  ...(session !== undefined && { 'Mcp-Session-Id': session }),
});

async function open(
  edge: EdgeUnderTest,
  key = 'ada',
  version = '2025-06-18',
  proposed?: string,
): Promise<string> {
  const answer = await edge.ask({ headers: as(key, proposed), body: initialize(version) });
  expect(answer.status).toBe(200);
  return String(answer.headers['mcp-session-id']);
}

async function whoami(edge: EdgeUnderTest, headers: Record<string, string>): Promise<unknown> {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami' } };
  const { result } = (await edge.ask({ headers, body })).json() as {
    result: { content: { text: string }[] };
  };
  return JSON.parse(result.content[0]?.text ?? '');
}

describe('opening a session', () => {
  it('names the session on the answer to initialize and on no other', async () => {
    const id = await open(usual);
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    const answer = await usual.ask({ headers: as('ada', id), body: ping() });
    expect(answer.headers).not.toHaveProperty('mcp-session-id');
    const stateless = await usual.ask(modern('server/discover', {}, as('ada', id)));
    expect(stateless.headers).not.toHaveProperty('mcp-session-id');
  });

  it('keeps the id a client proposes, and lets its owner open it again', async () => {
    expect(await open(usual, 'ada', '2025-06-18', 'proposed.1')).toBe('proposed.1');
    expect(await open(usual, 'ada', '2025-11-25', 'proposed.1')).toBe('proposed.1');
  });

  it('never hands a session to another principal that proposes its id', async () => {
    await open(usual, 'ada', '2025-06-18', 'proposed.2');
    expect(await open(usual, 'eve', '2025-06-18', 'proposed.2')).not.toBe('proposed.2');
    expect((await usual.sessions.find('proposed.2'))?.owner).toBe('ada');
  });

  it('opens none for a caller that is not recognised', async () => {
    const answer = await usual.ask({ headers: as('wrong', 'proposed.3'), body: initialize() });
    expect(answer.status).toBe(401);
    expect(await usual.sessions.find('proposed.3')).toBeUndefined();
  });
});

describe('using a session', () => {
  it('uses the negotiated version, unless a header names one', async () => {
    const list = async (headers: Record<string, string>) => {
      const answer = await usual.ask({ headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } });
      return (answer.json() as { result: { tools: Record<string, unknown>[] } }).result.tools[0];
    };
    const old = await open(usual, 'ada', '2025-03-26');
    expect(await list(as('ada', old))).not.toHaveProperty('outputSchema');
    expect(await list({ ...as('ada', old), 'MCP-Protocol-Version': '2025-06-18' })).toHaveProperty(
      'outputSchema',
    );
    expect(await list(as('ada'))).toHaveProperty('outputSchema');
  });

  it('passes the id to the call', async () => {
    expect(await whoami(usual, as('ada', 'label-1'))).toEqual({ principal: 'ada', correlationId: 'label-1' });
    expect(await whoami(usual, as('ada', 'not a label'))).toEqual({ principal: 'ada' });
  });

  it('treats the id as a mere label for another principal', async () => {
    const old = await open(usual, 'ada', '2025-03-26');
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const { result } = (await usual.ask({ headers: as('eve', old), body })).json() as {
      result: { tools: object[] };
    };
    expect(result.tools[0]).toHaveProperty('outputSchema');
    expect((await strict.ask({ headers: as('eve', await open(strict)), body })).status).toBe(404);
  });

  it('serves a known session in strict mode', async () => {
    const id = await open(strict);
    expect((await strict.ask({ headers: as('ada', id), body: ping() })).status).toBe(200);
  });
});

describe('ending a session', () => {
  const end = (edge: EdgeUnderTest, id: string, key = 'ada') =>
    edge.ask({ method: 'DELETE', headers: as(key, id) });

  it('answers known, unknown and foreign ids alike', async () => {
    const answers = [
      await end(usual, 'never-seen'),
      await end(usual, await open(usual)),
      await end(usual, await open(usual), 'eve'),
    ];
    for (const { status, text, headers } of answers) {
      expect([status, text, headers['content-type']]).toEqual([204, '', 'application/json']);
    }
  });

  it('answers later use of the session with not found, so that its client opens a new one', async () => {
    const id = await open(usual);
    await end(usual, id);
    const answer = await usual.ask({ headers: as('ada', id), body: ping(9) });
    expect([answer.status, answer.json()]).toEqual([
      404,
      { jsonrpc: '2.0', id: 9, error: { code: -32001, message: 'Session not found' } },
    ]);
    expect(await open(usual, 'ada', '2025-06-18', id)).not.toBe(id);
  });

  it('ends only the caller’s own sessions', async () => {
    const id = await open(usual);
    expect((await end(usual, id, 'wrong')).status).toBe(401);
    expect((await end(usual, id, 'eve')).status).toBe(204);
    expect((await usual.sessions.find(id))?.terminated).toBe(false);
    expect((await usual.ask({ headers: as('ada', id), body: ping() })).status).toBe(200);
    expect((await end(usual, id)).status).toBe(204);
    expect((await usual.sessions.find(id))?.terminated).toBe(true);
  });

  it('ends only calls of the caller, whatever their session id', async () => {
    const id = await open(usual);
    const startRunning = (key: string, label: string) => {
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'wait', arguments: {} } };
      return usual.ask({ headers: as(key, label), body });
    };
    const begun = usual.tools.contexts.length;
    const calls = [startRunning('ada', id), startRunning('ada', 'label'), startRunning('eve', 'label')];
    while (usual.tools.contexts.length < begun + 3) await new Promise(setImmediate);
    const [own, labelled, hers] = usual.tools.contexts.slice(begun).map(({ signal }) => signal);
    await end(usual, id, 'eve');
    await end(usual, 'label', 'ada');
    const listAborted = () => [own, labelled, hers].map((signal) => signal?.aborted);
    const byPrincipal = usual.tools.contexts.slice(begun).map(({ agent }) => agent.principal);
    expect(listAborted().filter((_, at) => byPrincipal[at] === 'eve')).toEqual([false]);
    expect(listAborted().filter(Boolean)).toHaveLength(1);
    await end(usual, id, 'ada');
    expect(listAborted().filter(Boolean)).toHaveLength(2);
    usual.tools.release();
    await Promise.all(calls);
  });

  it('runs after the checks of the origin and of the custom header', async () => {
    const careful = await edgeUnderTest({
      allowedOrigins: ['https://app.example'],
      requireCustomHeader: 'X-Parley',
    });
    const id = await careful.sessions.create({ owner: 'ada', version: '2025-06-18', capabilities: {} });
    const from = (headers: Record<string, string>) =>
      careful.ask({ method: 'DELETE', headers: { ...as('ada', id), ...headers } });
    expect((await from({ Origin: 'https://evil.example', 'X-Parley': '1' })).status).toBe(403);
    expect((await from({ Origin: 'https://app.example' })).status).toBe(403);
    expect((await careful.sessions.find(id))?.terminated).toBe(false);
    expect((await from({ Origin: 'https://app.example', 'X-Parley': '1' })).status).toBe(204);
    expect((await careful.sessions.find(id))?.terminated).toBe(true);
    await careful.stop();
  });
});

describe('messages without an answer', () => {
  it.each([
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', method: 'notifications/never-heard-of' },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
    { jsonrpc: '2.0', method: 'notifications/cancelled', id: 5 },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: 'nonsense' },
    { jsonrpc: '2.0', id: 'elicit-1', result: { action: 'accept' } },
    { jsonrpc: '2.0', id: 'elicit-1', error: { code: 1, message: 'no' } },
  ])('takes %j', async (body) => {
    const { status, text, headers } = await usual.ask({ body });
    expect([status, text, headers['content-type']]).toEqual([202, '', 'application/json']);
    expect((await usual.ask({ headers: as('wrong'), body })).status).toBe(401);
  });

  it('accepts a notification of the stateless era', async () => {
    const { status, text } = await usual.ask({
      headers: { 'MCP-Protocol-Version': '2026-07-28' },
      body: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
    });
    expect([status, text]).toEqual([202, '']);
  });

  it('answers a request without an id under a null id', async () => {
    expect((await usual.ask({ body: { jsonrpc: '2.0', method: 'ping' } })).json()).toEqual({
      jsonrpc: '2.0',
      id: null,
      result: {},
    });
  });

  it.each([[0], [''], ['a"b'], [true], [1.5]])('echoes the id %j', async (id) => {
    expect((await usual.ask({ body: ping(id) })).json()).toEqual({ jsonrpc: '2.0', id, result: {} });
  });
});
