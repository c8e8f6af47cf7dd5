import { describe, expect, it } from 'vitest';
import { handClock } from '../contracts/port-under-test.js';
import { sessionStoreContract } from '../contracts/session-store.contract.js';
import { ProcessSessionStore } from './sessions.js';

sessionStoreContract('ProcessSessionStore', () => {
  const { now, pass } = handClock();
  return { port: new ProcessSessionStore(100, undefined, now, 3), pass };
});

describe('ProcessSessionStore', () => {
  const draft = { owner: 'ada', version: '2025-06-18', capabilities: {} };

  it('forgets the longest unused session first', async () => {
    const store = new ProcessSessionStore(2);
    const first = await store.create(draft);
    const second = await store.create(draft);
    await store.find(first);
    const third = await store.create(draft);
    expect(await store.find(second)).toBeUndefined();
    expect(await store.find(first)).toBeDefined();
    expect(await store.find(third)).toBeDefined();
  });

  it('removes a session of the principal that has most when there is no room at all', async () => {
    const store = new ProcessSessionStore(4, undefined, undefined, 3);
    const heavy = [await store.create(draft), await store.create(draft), await store.create(draft)];
    const light = await store.create({ ...draft, owner: 'bob' });
    const newcomer = await store.create({ ...draft, owner: 'eve' });
    expect(await store.find(heavy[0] ?? '')).toBeUndefined();
    for (const id of [heavy[1], heavy[2], light, newcomer]) expect(await store.find(id ?? '')).toBeDefined();
  });

  it('refuses a size that holds nothing', () => {
    expect(() => new ProcessSessionStore(0)).toThrow(TypeError);
  });
});
