import { describe, expect, it } from 'vitest';
import { EmbeddingCache } from './embedding-cache.js';

describe('vectors that are remembered', () => {
  it('of one owner never push out those of another that has fewer', () => {
    const cache = new EmbeddingCache(10);
    for (const text of ['a', 'b', 'c']) cache.set('ada', 'm', text, [1]);
    for (let at = 0; at < 500; at += 1) cache.set('eve', 'm', `${at}`, [2]);
    for (const text of ['a', 'b', 'c']) expect(cache.get('ada', 'm', text)).toEqual([1]);
    expect(cache.get('eve', 'm', '499')).toEqual([2]);
    expect(cache.get('eve', 'm', '0')).toBeUndefined();
  });

  it('give way by their last use, and are none where none may be kept', () => {
    const cache = new EmbeddingCache(2);
    cache.set('ada', 'm', 'a', [1]);
    cache.set('ada', 'm', 'b', [2]);
    cache.get('ada', 'm', 'a');
    cache.set('ada', 'm', 'c', [3]);
    expect(['a', 'b', 'c'].map((text) => cache.get('ada', 'm', text))).toEqual([[1], undefined, [3]]);
    const none = new EmbeddingCache(0);
    none.set('ada', 'm', 'a', [1]);
    expect(none.get('ada', 'm', 'a')).toBeUndefined();
  });
});
