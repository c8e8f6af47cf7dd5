import { afterAll, describe, expect, it } from 'vitest';
import type { McpEdgeOptions } from '../http/edge-dependencies.js';
import { EVENTS, until } from '../testing/calls.js';
import { edgeUnderTest, type EdgeUnderTest, replicaState } from '../testing/edge-under-test.js';
import { modern } from '../testing/requests.js';

const running: EdgeUnderTest[] = [];
async function startServing(options?: McpEdgeOptions, state = replicaState()): Promise<EdgeUnderTest> {
  const edge = await edgeUnderTest(options, state);
  running.push(edge);
  return edge;
}
afterAll(async () => {
  await Promise.all(running.map((edge) => edge.stop()));
});

const listen = (accept: Record<string, string> = EVENTS) => {
  const asked = modern('subscriptions/listen', { notifications: { toolsListChanged: true } });
  return { ...asked, headers: { ...asked.headers, ...accept } };
};
const SUBSCRIPTION = { 'io.modelcontextprotocol/subscriptionId': 7 };

describe('an answer that stays open', () => {
  it('is a stream that first acknowledges what it will send, and then sends it', async () => {
    const state = replicaState();
    const [edge, other] = [await startServing({}, state), await startServing({}, state)];
    const stream = await edge.open(listen());
    await until(() => stream.messages().length === 1);
    other.listChanges.next('tools');
    other.listChanges.next('prompts');
    edge.listChanges.next('tools');
    await until(() => stream.messages().length === 3);
    const changed = {
      jsonrpc: '2.0',
      method: 'notifications/tools/list_changed',
      params: { _meta: SUBSCRIPTION },
    };
    expect(stream.messages()).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications: { toolsListChanged: true }, _meta: SUBSCRIPTION },
      },
      changed,
      changed,
    ]);
    expect(stream.text()).not.toContain('id: ');
    stream.leave();
    await until(() => edge.edge.activeListeningStreamCount === 0);
    expect(edge.abandoned).toEqual([]);
  });

  it('is kept alive by comments', async () => {
    const edge = await startServing({ heartbeatInterval: 50 });
    const stream = await edge.open(listen());
    await until(() => stream.frames().length > 2);
    expect(stream.frames()[1]).toEqual({ comment: 'keep-alive' });
    stream.leave();
  });

  it('ends with its result when the edge closes', async () => {
    const edge = await startServing();
    const stream = await edge.open(listen());
    await until(() => stream.messages().length === 1);
    await edge.edge.close();
    await stream.over;
    expect(stream.messages().at(-1)).toMatchObject({
      jsonrpc: '2.0',
      id: 7,
      result: { resultType: 'complete', _meta: SUBSCRIPTION },
    });
  });

  it('is refused to a client that accepts no stream', async () => {
    const edge = await startServing();
    const answer = await edge.ask(listen({ Accept: 'application/json' }));
    expect([answer.status, answer.json()]).toMatchObject([406, { id: 7, error: { code: -32600 } }]);
    expect(edge.edge.activeListeningStreamCount).toBe(0);
  });

  it('counts among the listening streams, not among the calls', async () => {
    const edge = await startServing({ maxConcurrentDispatchers: 1 });
    const stream = await edge.open(listen());
    await until(() => stream.messages().length === 1);
    expect([edge.edge.activeListeningStreamCount, edge.edge.activeDispatcherCount]).toEqual([1, 0]);
    const refused = await edge.ask(listen());
    expect([refused.status, refused.json()]).toEqual([
      503,
      { jsonrpc: '2.0', id: 7, error: { code: -32000, message: 'server busy' } },
    ]);
    stream.leave();
  });
});
