import { NEVER, Subject } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition } from '#core';
import { listenAs, openListening, openSession, until } from '../testing/calls.js';
import { edgeUnderTest, replicaState } from '../testing/edge-under-test.js';
import { ping } from '../testing/requests.js';
import { ListeningStreams, ReplicatedListChanges } from './listening-streams.js';
import { ReplicaSignals } from './replica-signals.js';

const state = replicaState();
const here = await edgeUnderTest({ heartbeatInterval: 60 }, state);
const there = await edgeUnderTest({ heartbeatInterval: 60 }, state);
const guarded = await edgeUnderTest({ requireCustomHeader: 'X-MCP-Client', sessions: 'strict' });
const small = await edgeUnderTest({ maxConcurrentDispatchers: 1 });
const edges = [here, there, guarded, small];
afterAll(() => Promise.all(edges.map((edge) => edge.stop())));

const notice = { method: 'notifications/resources/updated', params: { uri: 'parse://Post/count' } };
const error = (code: number, message: string) => ({ jsonrpc: '2.0', id: null, error: { code, message } });

describe('opening a listening stream', () => {
  it('begins with a comment under the headers of a stream', async () => {
    const stream = await openListening(here, await openSession(here));
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    expect(stream.headers).not.toHaveProperty('mcp-session-id');
    expect(stream.frames()[0]).toEqual({ comment: 'connected' });
    stream.leave();
  });

  it('is kept alive by comments', async () => {
    const stream = await openListening(here, await openSession(here));
    await until(() => stream.frames().length > 2);
    expect(stream.frames().slice(1, 3)).toEqual([{ comment: 'keep-alive' }, { comment: 'keep-alive' }]);
    stream.leave();
  });

  it.each([
    // As every request of HTTP+SSE: its clients take 405 for a server without it.
    [
      'no session',
      {},
      405,
      error(-32600, 'Method Not Allowed: send messages by POST; GET and DELETE are for sessions'),
    ],
    ['a bad session', { 'Mcp-Session-Id': 'a b' }, 400, error(-32600, 'Missing or invalid Mcp-Session-Id')],
    ['bad credentials', { 'X-MCP-API-Key': 'wrong' }, 401, error(-32001, 'Unauthorized')],
    ['a broken authenticator', { 'X-MCP-API-Key': 'broken' }, 500, error(-32603, 'Internal error')],
    ['a foreign page', { Origin: 'https://evil.example' }, 403, error(-32700, 'Origin not allowed')],
    [
      'an unknown version',
      { 'MCP-Protocol-Version': '1999-01-01' },
      400,
      error(-32600, 'Unsupported MCP-Protocol-Version: 1999-01-01'),
    ],
  ])('is refused with %s', async (_, headers, status, body) => {
    const answer = await here.ask(listenAs(headers));
    expect([answer.status, answer.json(), answer.headers['content-type']]).toEqual([
      status,
      body,
      'application/json',
    ]);
  });

  it('asks for the custom header as every other verb does', async () => {
    const answer = await guarded.ask(listenAs({ 'Mcp-Session-Id': 'x' }));
    expect([answer.status, answer.json().error]).toEqual([
      403,
      { code: -32700, message: 'Required custom header missing or invalid' },
    ]);
  });

  it("is refused for another principal's session", async () => {
    const session = await openSession(here);
    for (const edge of [here, there]) {
      const answer = await edge.ask(listenAs({ ...session, 'X-MCP-API-Key': 'eve' }));
      expect([answer.status, answer.json()]).toEqual([
        403,
        error(-32600, 'Mcp-Session-Id is owned by another principal'),
      ]);
    }
  });

  it('is refused for a session that nobody opened, or that was lost in a restart, in either mode', async () => {
    const lost = { 'X-MCP-Client': '1', 'Mcp-Session-Id': 'before-the-restart' };
    for (const edge of [here, guarded]) {
      const answer = await edge.ask(listenAs(lost));
      expect([answer.status, answer.json()]).toEqual([404, error(-32001, 'Session not found')]);
    }
    // In calls it is a label still, and no call makes a session of it.
    expect((await here.ask({ headers: lost, body: ping() })).status).toBe(200);
    expect((await here.ask(listenAs(lost))).status).toBe(404);
  });

  it('is refused for a session that ended', async () => {
    const session = await openSession(here);
    await here.ask({ method: 'DELETE', headers: session });
    expect((await there.ask(listenAs(session))).status).toBe(404);
  });

  it('answers busy when as many streams as permitted are open, until one closes', async () => {
    const first = await openListening(small, await openSession(small));
    const refused = await small.ask(listenAs(await openSession(small)));
    expect([refused.status, refused.json()]).toEqual([503, error(-32000, 'server busy')]);
    expect((await small.ask({ body: ping() })).status).toBe(200);
    first.leave();
    await until(() => small.edge.activeListeningStreamCount === 0);
    (await openListening(small, await openSession(small))).leave();
  });
});

describe.each([
  ['the replica that has the stream', here],
  ['another replica', there],
])('a notification sent at %s', (_, at) => {
  it('reaches the stream of its session and no other', async () => {
    const [mine, others] = [await openSession(here), await openSession(here)];
    const [stream, foreign] = [await openListening(here, mine), await openListening(here, others)];
    expect(await at.edge.notify(mine['Mcp-Session-Id'] as string, notice)).toBe(true);
    await until(() => stream.messages().length === 1);
    expect(stream.text()).toContain(
      `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...notice })}\n\n`,
    );
    expect(await at.edge.notify(others['Mcp-Session-Id'] as string, { method: 'notifications/x' })).toBe(
      true,
    );
    await until(() => foreign.messages().length === 1);
    expect(foreign.messages()).toEqual([{ jsonrpc: '2.0', method: 'notifications/x' }]);
    expect(stream.messages()).toHaveLength(1);
    stream.leave();
    foreign.leave();
  });

  it('is not delivered when there is no listening stream', async () => {
    const session = await openSession(here);
    expect(await at.edge.notify(session['Mcp-Session-Id'] as string, notice)).toBe(false);
    const stream = await openListening(here, session);
    stream.leave();
    await until(() => here.edge.activeListeningStreamCount === 0);
    expect(await at.edge.notify(session['Mcp-Session-Id'] as string, notice)).toBe(false);
  });

  it('must have a method', async () => {
    await expect(at.edge.notify('x', { method: '' })).rejects.toThrow(TypeError);
  });

  it('goes to the newer of two streams of a session; the older one ends', async () => {
    const session = await openSession(here);
    const older = await openListening(here, session);
    const newer = await openListening(there, session);
    await older.over;
    expect(await at.edge.notify(session['Mcp-Session-Id'] as string, notice)).toBe(true);
    await until(() => newer.messages().length === 1);
    expect(older.messages()).toEqual([]);
    expect(newer.isOver()).toBe(false);
    newer.leave();
    await until(() => there.edge.activeListeningStreamCount === 0);
  });

  it('finds no stream once the session was ended: DELETE closes it everywhere', async () => {
    const session = await openSession(here);
    const stream = await openListening(here, session);
    await at.ask({ method: 'DELETE', headers: session });
    await stream.over;
    expect(await at.edge.notify(session['Mcp-Session-Id'] as string, notice)).toBe(false);
    await until(() => here.edge.activeListeningStreamCount === 0);
  });

  it('announces changed lists on every listening stream of every replica', async () => {
    const streams = [
      await openListening(here, await openSession(here)),
      await openListening(there, await openSession(there)),
    ];
    at.listChanges.next('tools');
    for (const stream of streams) {
      await until(() => stream.messages().length === 1);
      expect(stream.messages()).toEqual([{ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }]);
      stream.leave();
    }
  });

  it('announces tools of one tenant on its streams alone, of every replica', async () => {
    const heard: string[] = [];
    const definition = compileAgentDefinition('reader', {});
    const replicas = ['here', 'there'].map((replica) => {
      const signals = new ReplicaSignals(state.bus, { warn: () => undefined });
      const listening = new ListeningStreams(signals, state);
      for (const tenantId of ['acme', 'globex', 7, null]) {
        const agent = new Agent({ definition, principal: 'ada', tenantId });
        const name = `${replica} ${tenantId}`;
        const deliver = () => heard.push(name) > 0;
        listening.attach(name, agent, { deliver, end: () => undefined });
      }
      return new ReplicatedListChanges(signals, listening);
    });
    const tenants = new Subject<string>();
    replicas[0]?.announce(NEVER, tenants);
    tenants.next('acme');
    tenants.next('7');
    await until(() => heard.length >= 4);
    tenants.next('nobody');
    tenants.next('acme');
    await until(() => heard.length >= 6);
    expect(heard.sort()).toEqual(['here 7', 'here acme', 'here acme', 'there 7', 'there acme', 'there acme']);
  });
});
