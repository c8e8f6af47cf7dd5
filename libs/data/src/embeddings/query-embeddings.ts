import { createHash } from 'node:crypto';
import { type Agent, type CallContext, refusals, Refused } from '#core';
import { ExpiringMap, processClock } from '#state';
import { EmbeddingError, type EmbeddingProvider, estimatedTokens } from './openai-embeddings.js';

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

/** Whose budgets are remembered; the longest idle is forgotten first. */
const MAX_KEYS = 10_000;

/** What each tenant may spend on embeddings in a sliding window, in this process. */
export class EmbeddingBudget {
  private readonly spent = new Map<string, Spending[]>();

  constructor(
    readonly options: EmbeddingBudgetOptions,
    private readonly now: () => number = () => performance.now() / 1000,
  ) {}

  /** Whether a text of that many tokens could ever be paid for. */
  covers(tokens: number): boolean {
    return tokens <= this.options.tokens;
  }

  /** Spends tokens. @returns null, or after how many seconds they could be spent */
  spend(key: string, tokens: number): number | null {
    const { tokens: most, window } = this.options;
    const at = this.now();
    const recent = (this.spent.get(key) ?? []).filter((one) => one.at > at - window);
    let over = recent.reduce((sum, one) => sum + one.tokens, 0) + tokens - most;
    this.remember(key, over > 0 ? recent : [...recent, { at, tokens }]);
    if (over <= 0) return null;
    for (const one of recent) {
      over -= one.tokens;
      if (over <= 0) return one.at + window - at;
    }
    return window;
  }

  private remember(key: string, spendings: Spending[]): void {
    this.spent.delete(key);
    this.spent.set(key, spendings);
    if (this.spent.size <= MAX_KEYS) return;
    const idle = this.spent.keys().next().value;
    if (idle !== undefined) this.spent.delete(idle);
  }
}

/**
 * Vectors of texts that were asked for before. When it is full, the owner that has most loses its longest unused one. Texts
 * themselves are not kept.
 */
export class EmbeddingCache {
  private readonly vectors: ExpiringMap<readonly number[]> | null;

  /** @param size vectors kept; 0: none */
  constructor(size: number) {
    this.vectors = size === 0 ? null : new ExpiringMap(size, processClock);
  }

  /** @param owner for whom: the time of an answer must not reveal what others asked */
  get(owner: string, model: string, text: string): readonly number[] | undefined {
    const key = keyOf(owner, model, text);
    const vector = this.vectors?.get(key);
    if (vector) this.vectors?.set(key, vector, Infinity, { owner });
    return vector;
  }

  set(owner: string, model: string, text: string, vector: readonly number[]): void {
    this.vectors?.set(keyOf(owner, model, text), vector, Infinity, { owner });
  }
}

function keyOf(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}

/** Characters of one text to look for. */
const MAX_CHARACTERS = 8_000;

export interface QueryEmbedding {
  readonly vector: readonly number[];
  /** Requests that were made: 0 when the vector was at hand. */
  readonly calls: number;
  readonly tokens: number;
}

export interface QueryEmbeddingOptions {
  /** Null: no limit. */
  readonly budget?: EmbeddingBudget | null;
  /** Vectors remembered. Default 1000. */
  readonly cacheSize?: number;
}

/** The vectors of texts that agents look for: within their budget, once each, errors as refusals. */
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
   * @throws Refused `invalid_argument` for a text that is too long or dearer than any budget, `rate_limited` when the
   * budget is spent, `parse_error` when the provider fails
   */
  async embed(
    text: string,
    { agent, signal }: Pick<CallContext, 'agent' | 'signal'>,
  ): Promise<QueryEmbedding> {
    if (text.length > MAX_CHARACTERS)
      throw new Refused(
        refusals.invalidArgument(`the text to look for is longer than ${MAX_CHARACTERS} characters`),
      );
    const owner = ownerOf(agent);
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
      if (signal.aborted) throw new Refused(refusals.cancelled());
      if (error instanceof EmbeddingError) throw new Refused(refusals.embeddingFailed(error.message));
      throw error;
    }
  }

  private assertAffordable({ permissions }: Agent, text: string): void {
    const { budget } = this;
    if (!budget || permissions === 'admin' || budget.covers(estimatedTokens(text))) return;
    throw new Refused(
      refusals.invalidArgument(
        'the text to look for costs more than the embedding budget',
        'embedding_budget',
      ),
    );
  }

  private pay({ permissions }: Agent, owner: string, text: string): void {
    const { budget } = this;
    if (!budget || permissions === 'admin') return;
    const wait = budget.spend(owner, estimatedTokens(text));
    if (wait === null) return;
    const { tokens, window } = budget.options;
    throw new Refused(refusals.embeddingBudgetSpent(tokens, window, wait));
  }
}

/** The tenant pays; without one, the calling principal. */
function ownerOf({ tenantId, principal }: Agent): string {
  return tenantId === null ? `principal:${principal}` : `tenant:${typeof tenantId}:${tenantId}`;
}
