import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Agent, findTenant, type McpRequest, refuse } from '#core';
import { ExpiringMap, processClock } from '#state';
import { EmbeddingError, type EmbeddingProvider, estimateTokens } from './openai-embeddings.js';

export interface EmbeddingBudgetOptions {
  /** Estimated tokens per window. */
  readonly tokens: number;
  /** Seconds. */
  readonly window: number;
}

interface Spending {
  readonly at: number;
  readonly tokens: number;
}

/** Maximum number of budgets in memory; the longest idle is removed first. */
const MAX_KEYS = 10_000;

/** The tokens that each tenant may use for embeddings in a sliding window, counted in this process. */
export class EmbeddingBudget {
  private readonly spent = new LRUCache<string, Spending[]>({ max: MAX_KEYS });

  constructor(
    readonly options: EmbeddingBudgetOptions,
    private readonly now: () => number = () => performance.now() / 1000,
  ) {}

  /** Whether the budget could ever permit a text of that many tokens. */
  covers(tokens: number): boolean {
    return tokens <= this.options.tokens;
  }

  /** Charges tokens. @returns null, or the seconds until they could be charged */
  spend(key: string, tokens: number): number | null {
    const { tokens: most, window } = this.options;
    const at = this.now();
    const recent = (this.spent.get(key) ?? []).filter((one) => one.at > at - window);
    let over = recent.reduce((sum, one) => sum + one.tokens, 0) + tokens - most;
    this.spent.set(key, over > 0 ? recent : [...recent, { at, tokens }]);
    if (over <= 0) return null;
    for (const one of recent) {
      over -= one.tokens;
      if (over <= 0) return one.at + window - at;
    }
    return window;
  }
}

/**
 * Cached vectors of earlier texts. When it is full, the owner that has most loses its longest unused vector. Texts themselves
 * are not stored.
 */
export class EmbeddingCache {
  private readonly vectors: ExpiringMap<readonly number[]> | null;

  /** @param size maximum number of vectors; 0: none */
  constructor(size: number) {
    this.vectors = size === 0 ? null : new ExpiringMap(size, processClock);
  }

  /** @param owner separates cache entries: the time of an answer must not reveal what other owners searched for */
  get(owner: string, model: string, text: string): readonly number[] | undefined {
    const key = toKey(owner, model, text);
    const vector = this.vectors?.get(key);
    if (vector) this.vectors?.set(key, vector, Infinity, { owner });
    return vector;
  }

  set(owner: string, model: string, text: string, vector: readonly number[]): void {
    this.vectors?.set(toKey(owner, model, text), vector, Infinity, { owner });
  }
}

function toKey(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}

/** Maximum characters of one search text. */
const MAX_CHARACTERS = 8_000;

export interface QueryEmbedding {
  readonly vector: readonly number[];
  /** Requests that were sent: 0 when the vector was cached. */
  readonly calls: number;
  readonly tokens: number;
}

export interface QueryEmbeddingOptions {
  /** Null: no limit. */
  readonly budget?: EmbeddingBudget | null;
  /** Maximum number of cached vectors. Default 1000. */
  readonly cacheSize?: number;
}

/** Embeds the search texts of agents within their budget. Each text is embedded once, and errors become refusals. */
export class QueryEmbeddings {
  private readonly cache: EmbeddingCache;
  private readonly budget: EmbeddingBudget | null;

  constructor(
    private readonly provider: EmbeddingProvider,
    options: QueryEmbeddingOptions = {},
  ) {
    this.cache = new EmbeddingCache(options.cacheSize ?? 1000);
    this.budget = options.budget ?? null;
  }

  /**
   * @throws Refused `invalid_argument` for a text that is too long or exceeds every budget, `rate_limited` when the budget is
   * exhausted, `parse_error` when the provider fails
   */
  async embed(
    text: string,
    { agent, signal }: Pick<McpRequest, 'agent' | 'signal'>,
  ): Promise<QueryEmbedding> {
    if (text.length > MAX_CHARACTERS)
      throw refuse.invalidArgument(`the text to look for is longer than ${MAX_CHARACTERS} characters`);
    const owner = toOwner(agent);
    const { provider, cache } = this;
    this.assertAffordable(agent, text);
    const known = cache.get(owner, provider.model, text);
    if (known) return { vector: known, calls: 0, tokens: 0 };
    this.pay(agent, owner, text);
    try {
      const { vector, tokens } = await provider.embed(text, signal);
      cache.set(owner, provider.model, text, vector);
      return { vector, calls: 1, tokens };
    } catch (error) {
      if (signal.aborted) throw refuse.cancelled();
      if (error instanceof EmbeddingError) throw refuse.embeddingFailed(error.message);
      throw error;
    }
  }

  private assertAffordable({ permissions }: Agent, text: string): void {
    const { budget } = this;
    if (!budget || permissions === 'admin' || budget.covers(estimateTokens(text))) return;
    throw refuse.invalidArgument(
      'the text to look for costs more than the embedding budget',
      'embedding_budget',
    );
  }

  private pay({ permissions }: Agent, owner: string, text: string): void {
    const { budget } = this;
    if (!budget || permissions === 'admin') return;
    const wait = budget.spend(owner, estimateTokens(text));
    if (wait === null) return;
    const { tokens, window } = budget.options;
    throw refuse.embeddingBudgetSpent(tokens, window, wait);
  }
}

/** The tenant's budget is charged; without a tenant, that of the calling principal. */
function toOwner(agent: Agent): string {
  const tenant = findTenant(agent);
  return tenant === null ? `principal:${agent.principal}` : `tenant:${typeof tenant}:${tenant}`;
}
