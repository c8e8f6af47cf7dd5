import { afterAll, describe, expect, it } from 'vitest';
import { call, EVENTS, listenAs, openListening, openSession, until } from '../testing/calls.js';
import { edgeUnderTest, type EdgeUnderTest } from '../testing/edge-under-test.js';
import { modern } from '../testing/requests.js';
import type { McpEdgeOptions } from './edge-dependencies.js';

const running: EdgeUnderTest[] = [];
async function startServing(options?: McpEdgeOptions): Promise<EdgeUnderTest> {
  const edge = await edgeUnderTest(options);
  running.push(edge);
  return edge;
}
afterAll(async () => {
  await Promise.all(running.map((edge) => edge.stop()));
});

describe('closing', () => {
  it('ends listening streams at once and opens no more, while calls finish', async () => {
    const edge = await startServing();
    const session = await openSession(edge);
    const stream = await openListening(edge, session);
    const slow = await edge.open({ headers: { ...session, ...EVENTS }, body: call('wait') });
    await until(() => edge.tools.contexts.length === 1);
    const closed = edge.edge.close(60_000);
    await stream.over;
    expect((await edge.ask(listenAs(session))).status).toBe(503);
    edge.tools.release();
    await slow.over;
    expect(slow.messages()).toMatchObject([{ id: 1, result: { isError: false } }]);
    await closed;
    expect(edge.edge.activeListeningStreamCount).toBe(0);
  });

  it('aborts a streamed call after the grace period, and its answer says so', async () => {
    const edge = await startServing();
    const slow = await edge.open({ headers: EVENTS, body: call('wait') });
    await until(() => edge.tools.contexts.length === 1);
    await edge.edge.close(1);
    await slow.over;
    const text = 'Ended before it was done: the service shuts down (server_shutdown)';
    expect(slow.messages()).toMatchObject([{ id: 1, result: { cancelled: true, content: [{ text }] } }]);
    expect(edge.tools.contexts[0]?.signal.reason).toBe('server_shutdown');
  });
});

describe('streams that are ended on this side', () => {
  it('end for the named agents, while their calls and the streams of others continue', async () => {
    const edge = await startServing();
    const [ada, bob] = [await openSession(edge), await openSession(edge, '2025-06-18', 'bob')];
    const returning: string[] = [];
    const left: string[] = [];
    edge.wire.listening.returning.subscribe((session) => returning.push(session));
    edge.wire.listening.left.subscribe((session) => left.push(session));
    const [hers, his] = [await openListening(edge, ada), await openListening(edge, bob)];
    const slow = await edge.open({ headers: { ...ada, ...EVENTS }, body: call('wait') });
    await until(() => edge.tools.contexts.length === 1);
    edge.edge.endStreamsWhere(({ principal }) => principal === 'ada');
    await hers.over;
    await until(() => edge.edge.activeListeningStreamCount === 1);
    expect(returning).toEqual([ada['Mcp-Session-Id']]);
    expect(left).toEqual([]);
    edge.tools.release();
    await slow.over;
    expect(slow.messages()).toMatchObject([{ id: 1, result: { isError: false } }]);
    // The client reconnects to its previous session.
    const again = await openListening(edge, ada);
    await edge.edge.close();
    await Promise.all([his.over, again.over]);
  });
});

describe('streams whose credentials are no longer valid', () => {
  const openSessions = async (edge: EdgeUnderTest) => {
    const [ada, bob] = [await openSession(edge), await openSession(edge, '2025-06-18', 'bob')];
    const [hers, his] = [await openListening(edge, ada), await openListening(edge, bob)];
    const modernOne = await edge.open(
      modern('subscriptions/listen', { notifications: { toolsListChanged: true } }, EVENTS),
    );
    await until(() => edge.edge.activeListeningStreamCount === 3);
    return { ada, hers, his, modernOne };
  };

  it('end, of both eras, while running calls and the streams of others continue', async () => {
    const edge = await startServing({ credentialsInterval: 20 });
    const { ada, hers, his, modernOne } = await openSessions(edge);
    const slow = await edge.open({ headers: { ...ada, ...EVENTS }, body: call('wait') });
    await until(() => edge.tools.contexts.length === 1);
    edge.authenticator.takenBack.add('ada');
    await Promise.all([hers.over, modernOne.over]);
    expect((await edge.ask(listenAs(ada))).status).toBe(401);
    const looks = edge.authenticator.seen.length;
    await until(() => edge.authenticator.seen.length > looks + 3);
    expect([his.isOver(), edge.edge.activeListeningStreamCount]).toEqual([false, 1]);
    edge.tools.release();
    await slow.over;
    expect(slow.messages()).toMatchObject([{ id: 1, result: { isError: false } }]);
    his.leave();
  });

  it('end as well while the credentials cannot be verified', async () => {
    const edge = await startServing({ credentialsInterval: 20 });
    const { hers, his, modernOne } = await openSessions(edge);
    edge.authenticator.away = true;
    await Promise.all([hers.over, his.over, modernOne.over]);
    await until(() => edge.edge.activeListeningStreamCount === 0);
    const looks = edge.authenticator.seen.length;
    edge.authenticator.away = false;
    // Without open streams there are no credentials to check.
    await edge.ask({ body: call('echo') });
    expect(edge.authenticator.seen.length).toBe(looks + 1);
  });
});
