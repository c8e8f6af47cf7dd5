import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { McpRequest } from '#core';
import { SharedStateUnavailable } from '#state';
import { call, cancel, EVENTS, openListening, openSession, until } from '../testing/calls.js';
import { edgeUnderTest, type EdgeUnderTest, replicaState } from '../testing/edge-under-test.js';
import { initialize } from '../testing/requests.js';

const state = replicaState();
const here = await edgeUnderTest({}, state);
const there = await edgeUnderTest({}, state);
afterEach(() => {
  here.tools.contexts.length = 0;
});
afterAll(() => Promise.all([here.stop(), there.stop()]));

const LONG = 60_000;
/** The result of a client request: the reply, or the reason why there is none. */
const outcomes: unknown[] = [];
const ask =
  (timeout = LONG) =>
  async ({ transport: { link } }: McpRequest) => {
    const outcome = await link
      ?.request('elicitation/create', { message: 'Sure?' }, timeout)
      .catch((error: { reason?: unknown }) => ({ unreachable: error.reason }));
    outcomes.push(outcome);
    return {};
  };
const outcome = async () => {
  await until(() => outcomes.length > 0);
  return outcomes.splice(0);
};

type ClientRequest = { id: string; method: string; params: object };
const reply = (id: unknown, content: object = { result: { action: 'accept' } }) => ({
  jsonrpc: '2.0',
  id,
  ...content,
});

/** A call that sends a request to the client on the stream of its own answer. */
async function askClient(edge: EdgeUnderTest, session: Record<string, string>) {
  edge.tools.work = ask();
  const answer = await edge.open({ headers: { ...session, ...EVENTS }, body: call('work', 'asking') });
  await until(() => answer.messages().length > 0);
  return { answer, question: answer.messages()[0] as ClientRequest };
}

describe('a request to the client', () => {
  it.each([
    ['the replica that asked', here],
    ['another replica', there],
  ])('goes out on the stream of the call and is answered at %s, always with 202', async (_, at) => {
    const session = await openSession(here);
    const { answer, question } = await askClient(here, session);
    expect(question).toMatchObject({ method: 'elicitation/create', params: { message: 'Sure?' } });
    const taken = await at.ask({ headers: session, body: reply(question.id) });
    expect([taken.status, taken.text]).toEqual([202, '']);
    expect(await outcome()).toEqual([{ result: { action: 'accept' } }]);
    await answer.over;
    expect(answer.messages()).toHaveLength(2);
  });

  it('returns an error as an error', async () => {
    const session = await openSession(here);
    const { question } = await askClient(here, session);
    await here.ask({ headers: session, body: reply(question.id, { error: { code: 1, message: 'no' } }) });
    expect(await outcome()).toEqual([{ error: { code: 1, message: 'no' } }]);
  });

  it.each([
    ['another principal', { 'X-MCP-API-Key': 'eve' }],
    ['the same one with a weaker token', { 'X-MCP-API-Key': 'ada as weak' }],
    ['another session', { 'Mcp-Session-Id': 'elsewhere' }],
  ])('is never answered by %s, who receives 202 as well', async (_, changed) => {
    const session = await openSession(here);
    const { question } = await askClient(here, session);
    const forged = { headers: { ...session, ...changed }, body: reply(question.id, { result: 'forged' }) };
    for (const edge of [here, there]) expect((await edge.ask(forged)).status).toBe(202);
    await here.ask({ headers: session, body: reply(question.id, { result: 'real' }) });
    expect(await outcome()).toEqual([{ result: 'real' }]);
  });

  it('is answered once: the first reply counts, wherever the second arrives', async () => {
    const session = await openSession(here);
    const { question } = await askClient(here, session);
    await Promise.all([
      here.ask({ headers: session, body: reply(question.id, { result: 1 }) }),
      there.ask({ headers: session, body: reply(question.id, { result: 1 }) }),
    ]);
    expect(await outcome()).toEqual([{ result: 1 }]);
    expect((await there.ask({ headers: session, body: reply(question.id, { result: 2 }) })).status).toBe(202);
  });

  it.each([
    ['the replica of the call', here],
    ['another replica', there],
  ])('goes out on the listening stream at %s when the call is answered with JSON', async (_, at) => {
    const session = await openSession(here);
    const stream = await openListening(at, session);
    here.tools.work = ask();
    const answer = here.ask({ headers: session, body: call('work') });
    await until(() => stream.messages().length === 1);
    const [question] = stream.messages() as unknown as ClientRequest[];
    await at.ask({ headers: session, body: reply(question?.id) });
    expect(await outcome()).toEqual([{ result: { action: 'accept' } }]);
    expect((await answer).json()).toMatchObject({ result: { isError: false } });
    stream.leave();
  });
});

describe('a client that cannot receive requests', () => {
  it('is one without a session, even under a label of somebody else’s', async () => {
    const session = await openSession(here);
    const stream = await openListening(here, session);
    here.tools.work = ask();
    const strangers: Record<string, string>[] = [
      {},
      { ...session, 'X-MCP-API-Key': 'eve' },
      { 'Mcp-Session-Id': 'never-seen' },
    ];
    for (const headers of strangers) {
      await here.ask({ headers, body: call('work') });
      expect(await outcome()).toEqual([undefined]);
      const streaming = await here.open({ headers: { ...headers, ...EVENTS }, body: call('work') });
      await streaming.over;
      expect(await outcome()).toEqual([{ unreachable: 'no-session' }]);
      expect(streaming.messages()).toHaveLength(1);
    }
    expect(stream.messages()).toEqual([]);
    stream.leave();
  });

  it.each([
    ['at the replica of the call', here],
    ['at another replica', there],
  ])('is one whose listening stream belongs to a weaker agent of the same person %s', async (_, at) => {
    const session = await openSession(here);
    const stream = await openListening(at, { ...session, 'X-MCP-API-Key': 'ada as weak' });
    here.tools.work = ask();
    await here.ask({ headers: session, body: call('work') });
    expect(await outcome()).toEqual([{ unreachable: 'no-stream' }]);
    expect(stream.messages()).toEqual([]);
    stream.leave();
  });

  it('is one that has no stream', async () => {
    here.tools.work = ask();
    await here.ask({ headers: await openSession(here), body: call('work') });
    expect(await outcome()).toEqual([{ unreachable: 'no-stream' }]);
  });

  it('is one that does not reply in time', async () => {
    here.tools.work = ask(20);
    await here.ask({ headers: { ...(await openSession(here)), ...EVENTS }, body: call('work') });
    expect(await outcome()).toEqual([{ unreachable: 'timed-out' }]);
  });

  it('is every client while the shared state is unavailable', async () => {
    const broken = replicaState();
    broken.oneTime.keep = () => Promise.reject(new SharedStateUnavailable());
    const edge = await edgeUnderTest({}, broken);
    edge.tools.work = ask();
    const answer = await edge.open({
      headers: { ...(await openSession(edge)), ...EVENTS },
      body: call('work'),
    });
    await answer.over;
    expect(await outcome()).toEqual([{ unreachable: 'not-delivered' }]);
    expect(answer.messages()).toHaveLength(1);
    broken.sessions.create = () => Promise.reject(new SharedStateUnavailable());
    const opening = await edge.open({ headers: EVENTS, body: initialize() });
    await opening.over;
    expect(opening.messages()).toEqual([
      { jsonrpc: '2.0', id: 0, error: { code: -32000, message: 'server busy' } },
    ]);
    await edge.stop();
  });
});

describe('waiting for a reply ends at once', () => {
  it.each([
    ['here', here],
    ['there', there],
  ])('when the call is cancelled %s', async (_, at) => {
    const session = await openSession(here);
    const { answer } = await askClient(here, session);
    await at.ask({ headers: session, body: cancel('asking') });
    expect(await outcome()).toEqual([{ unreachable: 'aborted' }]);
    await answer.over;
  });

  it('when the session ends on another replica', async () => {
    const session = await openSession(here);
    const { answer } = await askClient(here, session);
    await there.ask({ method: 'DELETE', headers: session });
    expect(await outcome()).toEqual([{ unreachable: 'aborted' }]);
    await answer.over;
  });

  it('when the stream of the call closes', async () => {
    const { answer } = await askClient(here, await openSession(here));
    answer.leave();
    expect(await outcome()).toEqual([{ unreachable: 'aborted' }]);
  });

  it.each([
    ['here', here],
    ['there', there],
  ])('when the listening stream that carried the request closes %s', async (_, at) => {
    const session = await openSession(here);
    const stream = await openListening(at, session);
    here.tools.work = ask();
    const answer = here.ask({ headers: session, body: call('work') });
    await until(() => stream.messages().length === 1);
    stream.leave();
    expect(await outcome()).toEqual([{ unreachable: 'aborted' }]);
    expect((await answer).status).toBe(200);
  });
});
