import { describe, expect, it } from 'vitest';
import { handClock } from './contracts/port-under-test.js';
import { sessionStoreContract } from './contracts/session-store.contract.js';
import { ProcessSessionStore } from './process-session-store.js';

sessionStoreContract('ProcessSessionStore', () => {
  const { now, pass } = handClock();
  return { port: new ProcessSessionStore(100, undefined, now), pass };
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

  it('refuses a size that holds nothing', () => {
    expect(() => new ProcessSessionStore(0)).toThrow(TypeError);
  });
});
