import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { call, cancel, EVENTS, openSession, until } from '../testing/calls.js';
import { edgeUnderTest, replicaState } from '../testing/edge-under-test.js';
import { modern } from '../testing/requests.js';

const state = replicaState();
const edge = await edgeUnderTest({}, state);
const other = await edgeUnderTest({}, state);
afterEach(() => {
  for (const { tools, abandoned } of [edge, other]) {
    tools.release();
    tools.contexts.length = 0;
    abandoned.length = 0;
  }
});
afterAll(() => Promise.all([edge.stop(), other.stop()]));

const CANCELLED = {
  isError: true,
  cancelled: true,
  content: [{ type: 'text', text: expect.stringContaining('Cancelled by client') as string }],
};
const waitUntilRunning = () => until(() => edge.tools.contexts.length === 1);
const reason = () => edge.tools.contexts[0]?.signal.reason as unknown;

describe.each([
  ['the replica that runs the call', edge],
  ['another replica', other],
])('a cancellation that arrives at %s', (_, at) => {
  it.each([
    ['as JSON', {}],
    ['as a stream', EVENTS],
  ])('ends a call answered %s, and its answer says so', async (_form, accept) => {
    const session = await openSession(edge);
    const answering = edge.open({ headers: { ...session, ...accept }, body: call('wait', 5) });
    await waitUntilRunning();
    const taken = await at.ask({ headers: session, body: cancel(5) });
    expect([taken.status, taken.text]).toEqual([202, '']);
    const answer = await answering;
    await answer.over;
    const json = accept === EVENTS ? answer.messages()[0] : (JSON.parse(answer.text()) as unknown);
    expect(json).toMatchObject({ id: 5, result: CANCELLED });
    expect(reason()).toBe('notifications_cancelled');
  });

  it.each([
    ['another principal', { 'X-MCP-API-Key': 'eve' }, 5],
    ['another session', { 'Mcp-Session-Id': 'elsewhere' }, 5],
    ['the same digits as text', {}, '5'],
    ['another request', {}, 6],
    ['no request', {}, undefined],
  ])('is accepted without effect when it names %s', async (_what, changed, requestId) => {
    const session = await openSession(edge);
    const answering = edge.ask({ headers: session, body: call('wait', 5) });
    await waitUntilRunning();
    expect((await at.ask({ headers: { ...session, ...changed }, body: cancel(requestId) })).status).toBe(202);
    // When a later message has arrived, every earlier message of the bus has arrived too.
    await at.ask({ headers: session, body: cancel('later') });
    expect(edge.tools.contexts[0]?.signal.aborted).toBe(false);
    edge.tools.release();
    expect((await answering).json()).toMatchObject({ result: { isError: false } });
  });

  it('of the whole session by DELETE ends its calls everywhere', async () => {
    const session = await openSession(edge);
    const answering = edge.ask({ headers: session, body: call('wait', 5) });
    await waitUntilRunning();
    expect((await at.ask({ method: 'DELETE', headers: session })).status).toBe(204);
    expect((await answering).json()).toMatchObject({ result: CANCELLED });
    expect(reason()).toBe('session_terminated');
    expect((await other.ask({ headers: session, body: call('echo') })).status).toBe(404);
  });
});

describe('a client that goes away', () => {
  it.each([
    ['streamed', EVENTS, 1],
    ['JSON', {}, 1],
  ])('ends its %s call, and that is reported once', async (_form, accept, abandoned) => {
    const before = edge.edge.abandonedDispatcherCount;
    const controller = new AbortController();
    const body = JSON.stringify(call('wait', 'x'));
    const answering = fetch(edge.url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...accept },
      body,
      signal: controller.signal,
    }).catch(() => null);
    await waitUntilRunning();
    controller.abort();
    await until(() => edge.abandoned.length === 1);
    expect(edge.abandoned).toEqual([
      { reason: 'client_disconnect', dispatcher_alive: true, request_id: 'x' },
    ]);
    expect(reason()).toBe('client_disconnect');
    expect(edge.edge.abandonedDispatcherCount - before).toBe(abandoned);
    await answering;
    await until(() => edge.edge.answering === 0);
    expect(edge.edge.activeDispatcherCount).toBe(0);
  });

  it('ends a call of 2026-07-28, and nothing follows', async () => {
    edge.tools.work = ({ progress, signal }) => {
      progress({ progress: 1 });
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));
    };
    const meta = { progressToken: 1 };
    const asked = modern('tools/call', { name: 'work', arguments: {} });
    const params = (asked.body as { params: { _meta: object } }).params;
    const body = { ...(asked.body as object), params: { ...params, _meta: { ...params._meta, ...meta } } };
    const arriving = await edge.open({ headers: { ...asked.headers, ...EVENTS }, body });
    await until(() => arriving.messages().length === 1);
    arriving.leave();
    await until(() => edge.abandoned.length === 1);
    expect(reason()).toBe('client_disconnect');
    expect(arriving.messages()).toHaveLength(1);
  });
});

describe('the name of a call', () => {
  it('goes to the latest request of that id, and stays with it when the earlier one ends', async () => {
    const session = await openSession(edge);
    edge.tools.work = async ({ signal }, args) => {
      if ((args as { brief?: boolean }).brief) return 'brief';
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve('cancelled')));
    };
    const first = edge.ask({ headers: session, body: call('wait', 8) });
    await waitUntilRunning();
    const second = edge.ask({ headers: session, body: call('work', 8) });
    await until(() => edge.tools.contexts.length === 2);
    edge.tools.release();
    expect((await first).json()).toMatchObject({ result: { isError: false } });
    await edge.ask({ headers: session, body: cancel(8) });
    expect((await second).json()).toMatchObject({ result: CANCELLED });
  });
});
