import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { EmbeddingProvider, OpenAiEmbeddings, type OpenAiEmbeddingOptions } from './openai-embeddings.js';
import { EmbeddingBudget, type EmbeddingBudgetOptions, QueryEmbeddings } from './query-embeddings.js';

/** The embeddings endpoint, the cache and the budget. */
export type EmbeddingsModuleOptions = OpenAiEmbeddingOptions & {
  readonly cacheSize: number;
  /** Null: unbounded. */
  readonly budget: EmbeddingBudgetOptions | null;
};

/**
 * Converts texts to vectors. Without options nothing is provided: a tool that needs `QueryEmbeddings` injects it optionally.
 */
@Module({})
export class EmbeddingsModule {
  static register(options: EmbeddingsModuleOptions | null): DynamicModule {
    return options
      ? {
          module: EmbeddingsModule,
          providers: providersOf(options),
          exports: [EmbeddingProvider, QueryEmbeddings],
        }
      : { module: EmbeddingsModule };
  }
}

function providersOf({ budget, cacheSize, ...endpoint }: EmbeddingsModuleOptions): Provider[] {
  return [
    { provide: EmbeddingProvider, useFactory: () => new OpenAiEmbeddings(endpoint) },
    {
      provide: QueryEmbeddings,
      useFactory: (provider: EmbeddingProvider) =>
        new QueryEmbeddings(provider, { cacheSize, budget: budget && new EmbeddingBudget(budget) }),
      inject: [EmbeddingProvider],
    },
  ];
}
