import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSharedState, processState, type SharedState } from '#cluster';
import { type RedisServer, startRedis } from '#cluster-contracts';
import { StoredWriteKeys } from './stored-write-keys.js';

let redis: RedisServer;
let state: SharedState;
beforeAll(async () => {
  redis = await startRedis();
  state = await openSharedState({ url: redis.url, log: { warn: () => undefined } });
}, 60_000);
afterAll(async () => {
  await state.close();
  await redis.stop();
});

describe.each([
  ['this process', () => processState()],
  ['Redis', () => state],
])('keys of writes in %s', (_where, open) => {
  const keys = () => new StoredWriteKeys(open());

  it('belong to whoever came first, and tell what came of it', async () => {
    const store = keys();
    const begun = await Promise.all(Array.from({ length: 10 }, () => store.begin('a', 'k', 'd1')));
    expect(begun.filter((known) => known === null)).toHaveLength(1);
    expect(await store.begin('a', 'k', 'd2')).toEqual({ digest: 'd1', state: 'begun' });
    await store.done('a', 'k', { digest: 'd1', objectId: 'x' });
    expect(await store.begin('a', 'k', 'd1')).toEqual({ digest: 'd1', state: 'done', objectId: 'x' });
  });

  it('are each principal’s own, and free again once they are forgotten', async () => {
    const store = keys();
    expect(await store.begin('b', 'k', 'd')).toBeNull();
    expect(await store.begin('c', 'k', 'd')).toBeNull();
    await store.forget('b', 'k');
    expect(await store.begin('b', 'k', 'e')).toBeNull();
    expect(await store.begin('c', 'k', 'e')).toEqual({ digest: 'd', state: 'begun' });
  });

  it('are as many as one principal may have, and others have theirs', async () => {
    const store = new StoredWriteKeys(open(), 2);
    expect(await store.begin('d', '1', 'd')).toBeNull();
    expect(await store.begin('d', '2', 'd')).toBeNull();
    await expect(store.begin('d', '3', 'd')).rejects.toMatchObject({ rate: { limit: 2 } });
    expect(await store.begin('e', '1', 'd')).toBeNull();
  });
});
