import { type Agent, type CallContext, Refused, refusals } from '#agent';
import type { EmbeddingBudget } from './embedding-budget.js';
import { EmbeddingCache } from './embedding-cache.js';
import { EmbeddingError, type EmbeddingProvider, estimatedTokens } from './embedding-provider.js';

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

/** The vectors of texts that agents look for: within their budget, once each, faults as refusals. */
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

/** Tenants pay for their own; without one, whoever calls. */
function ownerOf({ tenantId, principal }: Agent): string {
  return tenantId === null ? `principal:${principal}` : `tenant:${typeof tenantId}:${tenantId}`;
}
