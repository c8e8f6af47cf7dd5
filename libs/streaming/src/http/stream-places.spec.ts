import { afterEach, describe, expect, it } from 'vitest';
import type { Agent } from '#core';
import { call, EVENTS, listenAs, openSession, until } from '../testing/calls.js';
import { type Asked, edgeUnderTest, type EdgeUnderTest } from '../testing/edge-under-test.js';
import { modern } from '../testing/requests.js';
import { type Download, Downloads } from './edge-dependencies.js';

/** The same file for everybody, without an end. */
class EndlessFile extends Downloads {
  open(): Promise<Download> {
    return Promise.resolve({ fileName: 'Post.csv', mimeType: 'text/csv', pieces: this.endless() });
  }

  revoke(_id: string, _agent: Agent): Promise<boolean> {
    return Promise.resolve(false);
  }

  private async *endless() {
    for (;;) yield 'x'.repeat(65_536);
  }
}

let edge: EdgeUnderTest;
afterEach(async () => {
  edge.tools.release();
  await edge.stop();
});

const asKey = (key: string) => ({ 'X-MCP-API-Key': key });

describe.each<[string, (key: string) => Promise<Asked>]>([
  [
    'calls answered as streams',
    async (key) => ({ headers: { ...EVENTS, ...asKey(key) }, body: call('wait') }),
  ],
  ['listening streams', async (key) => listenAs(await openSession(edge, '2025-06-18', key))],
  [
    'listening requests',
    async (key) =>
      modern(
        'subscriptions/listen',
        { notifications: { toolsListChanged: true } },
        { ...EVENTS, ...asKey(key) },
      ),
  ],
  ['downloads', async (key) => ({ method: 'GET', path: '/exports/file', headers: asKey(key) })],
])('of %s', (_, toRequest) => {
  it('one principal opens a quarter, and every other still gets a place', async () => {
    edge = await edgeUnderTest({ maxConcurrentDispatchers: 8 }, undefined, new EndlessFile());
    const open = async (key: string) => {
      const stream = await edge.open(await toRequest(key));
      stream.pause();
      return stream;
    };
    const own = [await open('ada'), await open('ada')];
    const refused = await edge.ask(await toRequest('ada'));
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
    expect(refused.text).toContain('server busy: this caller');
    const others = [await open('eve'), await open('bob')];
    expect([...own, ...others].map(({ status }) => status)).toEqual([200, 200, 200, 200]);

    own[0]?.leave();
    let again = 503;
    while (again !== 200) {
      const stream = await edge.open(await toRequest('ada'));
      again = stream.status;
      stream.leave();
    }
    for (const stream of [...own, ...others]) stream.leave();
  });
});

describe('places without a limit', () => {
  it('are not shared out', async () => {
    edge = await edgeUnderTest({ maxConcurrentDispatchers: null });
    const sessions = await Promise.all(Array.from({ length: 30 }, () => openSession(edge)));
    const streams = await Promise.all(sessions.map((session) => edge.open(listenAs(session))));
    expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200));
    await until(() => edge.edge.activeListeningStreamCount === 30);
    for (const stream of streams) stream.leave();
  });
});
