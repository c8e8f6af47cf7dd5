import { describe, expect, it } from 'vitest';
import { ExpiringCache } from './expiring-cache.js';

describe('promised values that are kept', () => {
  it('of one owner never push out those of another that has fewer', async () => {
    const cache = new ExpiringCache<string | null>(
      1_000,
      10,
      () => 0,
      (owner) => owner,
    );
    const loaded: string[] = [];
    const ask = (key: string, owner: string) =>
      cache.get(key, () => {
        loaded.push(key);
        return Promise.resolve(owner);
      });
    for (const key of ['a', 'b', 'c']) await ask(key, 'ada');
    for (let at = 0; at < 500; at += 1) await ask(`eve ${at}`, 'eve');
    loaded.length = 0;
    for (const key of ['a', 'b', 'c']) expect(await ask(key, 'ada')).toBe('ada');
    await ask('eve 499', 'eve');
    expect(loaded).toEqual([]);
    await ask('eve 0', 'eve');
    expect(loaded).toEqual(['eve 0']);
  });

  it('are loaded once for all who ask, and again after a failure, a null, a clearing, and their time', async () => {
    let now = 0;
    let loads = 0;
    const cache = new ExpiringCache<string | null>(
      1_000,
      10,
      () => now,
      (owner) => owner,
    );
    const ask = (value: Promise<string | null> = Promise.resolve('x')) =>
      cache.get('k', () => {
        loads += 1;
        return value;
      });
    await Promise.all([ask(), ask(), ask()]);
    expect(loads).toBe(1);
    now = 999;
    await ask();
    expect(loads).toBe(1);
    now = 1_000;
    await ask(Promise.resolve(null));
    await ask(Promise.reject(new Error('away'))).catch(() => undefined);
    await ask();
    expect(loads).toBe(4);
    cache.clear();
    await ask();
    expect(loads).toBe(5);
  });
});
