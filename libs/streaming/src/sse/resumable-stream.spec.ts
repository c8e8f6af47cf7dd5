import fc from 'fast-check';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { call, cancel, EVENTS, listenAs, openSession, until } from '../testing/calls.js';
import {
  type Arriving,
  edgeUnderTest,
  type EdgeUnderTest,
  replicaState,
} from '../testing/edge-under-test.js';

const state = replicaState();
const here = await edgeUnderTest({}, state);
const there = await edgeUnderTest({}, state);
afterEach(() => {
  for (const { tools, abandoned } of [here, there]) {
    tools.release();
    tools.contexts.length = 0;
    abandoned.length = 0;
  }
});
afterAll(() => Promise.all([here.stop(), there.stop()]));

const createProgress = (progress: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: 'p', progress },
});

/** A call that reports what the test sends to it, and answers when the test ends it. */
function teller(edge: EdgeUnderTest) {
  let say: (step: number, message?: string) => void = () => undefined;
  let finish: (data: unknown) => void = () => undefined;
  let endStream: (() => void) | undefined;
  edge.tools.work = (context) => {
    say = (progress, message) => context.progress({ progress, ...(message && { message }) });
    endStream = context.endStream;
    return new Promise((resolve) => {
      finish = resolve;
      context.signal.addEventListener('abort', () => resolve('aborted'));
    });
  };
  return {
    say: (step: number, message?: string) => say(step, message),
    finish: () => finish({ done: true }),
    endStream: () => endStream?.(),
    offersEnd: () => endStream !== undefined,
  };
}

const begin = async (session: Record<string, string>) => {
  const arriving = await here.open({
    headers: { ...session, ...EVENTS },
    body: call('work', 'r', { progressToken: 'p' }),
  });
  await until(() => arriving.frames().length > 0 && here.tools.contexts.length === 1);
  return arriving;
};
const lastId = (arriving: Arriving) =>
  arriving
    .frames()
    .filter(({ id }) => id !== undefined)
    .at(-1)?.id as string;
const comeBack = (edge: EdgeUnderTest, session: Record<string, string>, id: string) =>
  edge.open(listenAs({ ...session, 'Last-Event-ID': id }));

describe('a stream of 2025-11-25', () => {
  it('begins with an id, a time to wait and no message; every message has an id', async () => {
    const tells = teller(here);
    const arriving = await begin(await openSession(here, '2025-11-25'));
    expect(arriving.frames()[0]).toEqual({ id: expect.any(String) as string, retry: 500, data: '' });
    tells.say(1);
    tells.finish();
    await arriving.over;
    const ids = arriving.frames().map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    expect(new Set(ids.map((id) => id?.split('.')[0])).size).toBe(1);
    expect(arriving.messages()).toMatchObject([createProgress(1), { id: 'r' }]);
  });

  it.each(['2025-06-18', '2025-03-26'])(
    'of %s has no ids, and its loss is a cancellation',
    async (version) => {
      const tells = teller(here);
      const session = await openSession(here, version);
      const arriving = await here.open({ headers: { ...session, ...EVENTS }, body: call('work') });
      await until(() => here.tools.contexts.length === 1);
      expect(tells.offersEnd()).toBe(false);
      arriving.leave();
      await until(() => here.abandoned.length === 1);
      expect(arriving.text()).not.toContain('id:');
    },
  );

  it('without a session has no ids, and its loss is a cancellation', async () => {
    teller(here);
    const headers = { ...EVENTS, 'MCP-Protocol-Version': '2025-11-25' };
    const arriving = await here.open({ headers, body: call('work') });
    await until(() => here.tools.contexts.length === 1);
    arriving.leave();
    await until(() => here.tools.contexts[0]?.signal.reason === 'client_disconnect');
    expect(here.abandoned).toHaveLength(1);
  });
});

describe.each([
  ['the same replica', here],
  ['another replica', there],
])('a client that comes back to %s', (_, at) => {
  it('receives what it missed and what follows, in order, once', async () => {
    const tells = teller(here);
    const session = await openSession(here, '2025-11-25');
    const first = await begin(session);
    tells.say(1);
    await until(() => first.messages().length === 1);
    const id = lastId(first);
    first.leave();
    tells.say(2);
    const second = await comeBack(at, session, id);
    tells.say(3);
    await until(() => second.messages().length === 2);
    tells.say(4);
    tells.finish();
    await second.over;
    expect(second.messages()).toMatchObject([
      createProgress(2),
      createProgress(3),
      createProgress(4),
      { id: 'r' },
    ]);
    expect(here.tools.contexts[0]?.signal.aborted).toBe(false);
    expect(here.abandoned).toEqual([]);
  });

  it('receives the answer that was sent while it was disconnected', async () => {
    const tells = teller(here);
    const session = await openSession(here, '2025-11-25');
    const first = await begin(session);
    const id = lastId(first);
    first.leave();
    await until(() => here.edge.activeListeningStreamCount === 0);
    tells.finish();
    await until(() => here.edge.activeDispatcherCount === 0);
    const second = await comeBack(at, session, id);
    await second.over;
    expect(second.messages()).toMatchObject([{ id: 'r', result: { isError: false } }]);
  });

  it('receives more than may wait for a client at once', async () => {
    const tells = teller(here);
    const session = await openSession(here, '2025-11-25');
    const first = await begin(session);
    const id = lastId(first);
    first.leave();
    const large = 'x'.repeat(600_000);
    for (const step of [1, 2, 3, 4, 5]) tells.say(step, large);
    tells.finish();
    await until(() => here.tools.contexts.length === 1);
    const second = await comeBack(at, session, id);
    await second.over;
    expect(second.messages()).toMatchObject([
      ...[1, 2, 3, 4, 5].map((progress) => ({ params: { progress, message: large } })),
      { id: 'r' },
    ]);
  });

  it('takes the stream over from a connection that is still open', async () => {
    const tells = teller(here);
    const session = await openSession(here, '2025-11-25');
    const first = await begin(session);
    const second = await comeBack(at, session, lastId(first));
    await first.over;
    tells.say(7);
    tells.finish();
    await second.over;
    expect(first.messages()).toEqual([]);
    expect(second.messages()).toMatchObject([createProgress(7), { id: 'r' }]);
  });

  it('resumes a stream that its tool ended early', async () => {
    const tells = teller(here);
    const session = await openSession(here, '2025-11-25');
    const first = await begin(session);
    tells.endStream();
    await first.over;
    const second = await comeBack(at, session, lastId(first));
    tells.finish();
    await second.over;
    expect(second.messages()).toMatchObject([{ id: 'r', result: { isError: false } }]);
  });

  it('receives no answer of a call that was cancelled meanwhile: the stream ends', async () => {
    teller(here);
    const session = await openSession(here, '2025-11-25');
    const first = await begin(session);
    const id = lastId(first);
    const second = await comeBack(at, session, id);
    await at.ask({ headers: session, body: cancel('r') });
    await second.over;
    expect(second.messages()).toEqual([]);
    expect((await comeBack(at, session, id)).status).toBe(400);
  });

  it('is refused the stream of another session, principal or agent, or an id of its own making', async () => {
    const tells = teller(here);
    const session = await openSession(here, '2025-11-25');
    const first = await begin(session);
    tells.say(1);
    await until(() => first.messages().length === 1);
    const id = lastId(first);
    const elsewhere = await openSession(here, '2025-11-25');
    const refused = await at.ask(listenAs({ ...elsewhere, 'Last-Event-ID': id }));
    expect([refused.status, refused.json()]).toEqual([
      400,
      { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'Unknown Last-Event-ID' } },
    ]);
    const foreign = { ...session, 'X-MCP-API-Key': 'eve', 'Last-Event-ID': id };
    expect((await at.ask(listenAs(foreign))).status).toBe(403);
    const weaker = { ...session, 'X-MCP-API-Key': 'ada as weak', 'Last-Event-ID': id };
    expect((await at.ask(listenAs(weaker))).status).toBe(400);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: id.length - 1 }),
        fc.constantFrom('0', '9', 'a', '-', '.', 'x', ''),
        async (place, put) => {
          const tampered = id.slice(0, place) + put + id.slice(place + 1);
          fc.pre(tampered !== id);
          const answer = await comeBack(at, session, tampered);
          answer.leave();
          // A client may name any other entry of the same stream.
          const own = tampered.split('.')[0] === id.split('.')[0];
          if (!own) expect(answer.status).toBe(400);
          else expect([200, 400]).toContain(answer.status);
        },
      ),
      { numRuns: 30 },
    );
    tells.finish();
  });
});
