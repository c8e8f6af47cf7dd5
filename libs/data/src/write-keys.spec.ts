import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSharedState, processState, type SharedState } from '#state';
import { type RedisServer, startRedis } from '#state/contracts';
import { WriteKeys } from './write-keys.js';

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
  const keys = () => new WriteKeys(open());

  it('belong to the first call, and return its result', async () => {
    const store = keys();
    const begun = await Promise.all(Array.from({ length: 10 }, () => store.begin('a', 'k', 'd1')));
    expect(begun.filter((known) => known === null)).toHaveLength(1);
    expect(await store.begin('a', 'k', 'd2')).toEqual({ digest: 'd1', state: 'begun' });
    await store.markDone('a', 'k', { digest: 'd1', objectId: 'x' });
    expect(await store.begin('a', 'k', 'd1')).toEqual({ digest: 'd1', state: 'done', objectId: 'x' });
  });

  it('are each principal’s own, and free again once they are forgotten', async () => {
    const store = keys();
    expect(await store.begin('b', 'k', 'd')).toBeNull();
    expect(await store.begin('c', 'k', 'd')).toBeNull();
    await store.forget('b', 'k', undefined);
    expect(await store.begin('b', 'k', 'e')).toBeNull();
    expect(await store.begin('c', 'k', 'e')).toEqual({ digest: 'd', state: 'begun' });
  });

  it('belong to the attempt that noted its mark last', async () => {
    const store = keys();
    const mark = (attempt: string) => ({ attempt, before: 't0', after: ['t1'] });
    const write = (attempt: string) => ({ digest: 'd', objectId: 'x', mark: mark(attempt) });
    await store.begin('f', 'k', 'd');
    expect(await store.markSending('f', 'k', write('1'), undefined)).toBe(true);
    expect(await store.begin('f', 'k', 'd')).toEqual({ ...write('1'), state: 'begun' });
    const taken = ['2', '3', '4'].map((attempt) => store.markSending('f', 'k', write(attempt), mark('1')));
    expect((await Promise.all(taken)).filter(Boolean)).toHaveLength(1);
    expect(await store.markSending('f', 'k', write('5'), mark('1'))).toBe(false);
    await store.forget('f', 'k', mark('1'));
    await store.forget('f', 'k', undefined);
    const held = await store.begin('f', 'k', 'd');
    expect(held?.mark).toBeDefined();
    await store.forget('f', 'k', held?.mark);
    expect(await store.begin('f', 'k', 'e')).toBeNull();
    await store.markDone('f', 'k', { digest: 'e', objectId: 'x' });
    expect(await store.markSending('f', 'k', write('6'), undefined)).toBe(false);
    await store.forget('f', 'k', undefined);
    expect(await store.begin('f', 'k', 'e')).toEqual({ digest: 'e', objectId: 'x', state: 'done' });
  });

  it('are as many as one principal may have, and others have theirs', async () => {
    const store = new WriteKeys(open(), 2);
    expect(await store.begin('d', '1', 'd')).toBeNull();
    expect(await store.begin('d', '2', 'd')).toBeNull();
    await expect(store.begin('d', '3', 'd')).rejects.toMatchObject({ rate: { limit: 2 } });
    expect(await store.begin('e', '1', 'd')).toBeNull();
  });
});
