import { Module } from '@nestjs/common';
import { provideReplaceable } from '#core';
import { EmbeddingProvider, OpenAiEmbeddings, type OpenAiEmbeddingOptions } from './openai-embeddings.js';
import { EmbeddingBudget, type EmbeddingBudgetOptions, QueryEmbeddings } from './query-embeddings.js';

/** The embeddings endpoint, the cache and the budget. */
export type EmbeddingsModuleOptions = OpenAiEmbeddingOptions & {
  /** Null: unbounded. */
  readonly budget: EmbeddingBudgetOptions | null;
};

export const EMBEDDING_OPTIONS = Symbol('options of embeddings');
const CONFIGURED_EMBEDDINGS = Symbol('embeddings of the configured endpoint');

/** Converts texts to vectors. Where no endpoint is configured its providers are null. */
@Module({
  providers: [
    {
      provide: CONFIGURED_EMBEDDINGS,
      useFactory: (options: EmbeddingsModuleOptions | null) => {
        if (!options) return null;
        const { budget: _budget, ...endpoint } = options;
        return new OpenAiEmbeddings(endpoint);
      },
      inject: [EMBEDDING_OPTIONS],
    },
    provideReplaceable(EmbeddingProvider, CONFIGURED_EMBEDDINGS),
    {
      provide: QueryEmbeddings,
      useFactory: (options: EmbeddingsModuleOptions | null, provider: EmbeddingProvider) => {
        if (!options) return null;
        const { budget } = options;
        return new QueryEmbeddings(provider, { budget: budget && new EmbeddingBudget(budget) });
      },
      inject: [EMBEDDING_OPTIONS, EmbeddingProvider],
    },
  ],
  exports: [EmbeddingProvider, QueryEmbeddings],
})
export class EmbeddingsModule {}
