import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, type Tier } from '#core';
import {
  type Embedding,
  EmbeddingError,
  EmbeddingProvider,
  estimateTokens,
  isAllowedEndpoint,
  isSafeTransport,
} from './openai-embeddings.js';
import { EmbeddingBudget, EmbeddingCache, QueryEmbeddings } from './query-embeddings.js';

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

/** A provider that records its requests. */
class CountingProvider extends EmbeddingProvider {
  readonly model = 'notebook';
  readonly dimensions = 1;
  readonly asked: string[] = [];

  embed(text: string): Promise<Embedding> {
    this.asked.push(text);
    if (text === 'bad') return Promise.reject(new EmbeddingError('why it failed'));
    return Promise.resolve({ vector: [text.length], tokens: 9 });
  }
}

const call = (tenantId: string | null = 'north', permissions: Tier = 'readonly', principal = 'p') => ({
  agent: new Agent({ definition: compileAgentDefinition('a', { permissions }), tenantId, principal }),
  signal: new AbortController().signal,
});
const refusal = (code: string, gate?: string) => ({ refusal: { code, ...(gate && { gate }) } });

describe('vectors of texts to look for', () => {
  it('are asked for once per owner, and never shared between owners', async () => {
    const provider = new CountingProvider();
    const queries = new QueryEmbeddings(provider);
    expect(await queries.embed('tea', call())).toEqual({ vector: [3], calls: 1, tokens: 9 });
    expect(await queries.embed('tea', call())).toEqual({ vector: [3], calls: 0, tokens: 0 });
    expect(await queries.embed('tea', call('south'))).toMatchObject({ calls: 1 });
    expect(await queries.embed('tea', call(null, 'readonly', 'q'))).toMatchObject({ calls: 1 });
  });

  it('are forgotten longest unused first, within the size', async () => {
    const provider = new CountingProvider();
    const queries = new QueryEmbeddings(provider, { cacheSize: 2 });
    for (const text of ['a', 'b', 'a', 'c', 'a', 'b']) await queries.embed(text, call());
    expect(provider.asked).toEqual(['a', 'b', 'c', 'b']);
    const none = new QueryEmbeddings(provider, { cacheSize: 0 });
    await none.embed('z', call());
    expect(await none.embed('z', call())).toMatchObject({ calls: 1 });
  });

  it('are refused when too long, or when the provider fails, which is for the log', async () => {
    const queries = new QueryEmbeddings(new CountingProvider());
    await expect(queries.embed('x'.repeat(8_001), call())).rejects.toMatchObject(refusal('invalid_argument'));
    await expect(queries.embed('bad', call())).rejects.toMatchObject({
      refusal: { code: 'parse_error', cause: 'why it failed', message: expect.not.stringContaining('why') },
    });
  });

  it('are paid for by the tenant; an admin is exempt, and what is remembered is free', async () => {
    const budget = new EmbeddingBudget({ tokens: 2, window: 60 });
    const queries = new QueryEmbeddings(new CountingProvider(), { budget });
    await expect(queries.embed('far too long', call())).rejects.toMatchObject(
      refusal('invalid_argument', 'embedding_budget'),
    );
    await queries.embed('1234567', call());
    await expect(queries.embed('other', call())).rejects.toMatchObject({
      refusal: { code: 'rate_limited', retryAfter: expect.any(Number) },
    });
    expect(await queries.embed('1234567', call())).toMatchObject({ calls: 0 });
    expect(await queries.embed('other', call('south'))).toMatchObject({ calls: 1 });
    expect(await queries.embed('far too long', call('north', 'admin'))).toMatchObject({ calls: 1 });
  });
});

describe('the budget', () => {
  it('frees what is older than its window, and says when that will be', () => {
    let now = 0;
    const budget = new EmbeddingBudget({ tokens: 10, window: 60 }, () => now);
    expect(budget.spend('a', 6)).toBeNull();
    now = 20;
    expect(budget.spend('a', 4)).toBeNull();
    expect(budget.spend('a', 5)).toBe(40);
    expect(budget.spend('a', 7)).toBe(60);
    now = 60;
    expect(budget.spend('a', 5)).toBeNull();
  });

  it('is never spent beyond its tokens in any window', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 12 }))),
        (steps) => {
          let now = 0;
          const budget = new EmbeddingBudget({ tokens: 20, window: 60 }, () => now);
          const paid: { at: number; tokens: number }[] = [];
          for (const [wait, tokens] of steps) {
            now += wait;
            if (budget.spend('a', tokens) === null) paid.push({ at: now, tokens });
            const recent = paid.filter(({ at }) => at > now - 60);
            expect(recent.reduce((sum, one) => sum + one.tokens, 0)).toBeLessThanOrEqual(20);
          }
        },
      ),
    );
  });

  it('counts a quarter of the characters', () => {
    expect([estimateTokens(''), estimateTokens('abcd'), estimateTokens('abcde')]).toEqual([0, 1, 2]);
  });
});

describe('endpoints', () => {
  const allowed = ['https://api.example.com/v1', 'not a url'];
  it.each([
    ['https://api.example.com/v1', true],
    ['https://api.example.com/v1/embeddings', true],
    ['https://api.example.com/v10', false],
    ['https://api.example.com/', false],
    ['https://api.example.com:8443/v1', false],
    ['http://api.example.com/v1', false],
    ['https://api.example.com.evil.org/v1', false],
    ['https://evil.org/https://api.example.com/v1', false],
    ['https://api.example.com/v1/../admin', false],
    ['not a url', false],
  ])('%s is allowed: %s', (endpoint, verdict) => {
    expect(isAllowedEndpoint(endpoint, allowed)).toBe(verdict);
    expect(isAllowedEndpoint(endpoint, null)).toBe(true);
    expect(isAllowedEndpoint(endpoint, [])).toBe(false);
  });

  it.each([
    ['https://api.example.com', true],
    ['http://127.0.0.1:11434/v1', true],
    ['http://[::1]/v1', true],
    ['http://api.example.com', false],
    ['http://127.0.0.1.evil.org', false],
    ['https://user:pass@api.example.com', false],
    ['ftp://api.example.com', false],
  ])('%s may carry text: %s', (endpoint, verdict) => {
    expect(isSafeTransport(endpoint)).toBe(verdict);
  });
});
