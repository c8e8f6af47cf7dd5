import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { EmbeddingProvider, OpenAiEmbeddings, type OpenAiEmbeddingOptions } from './openai-embeddings.js';
import { EmbeddingBudget, type EmbeddingBudgetOptions, QueryEmbeddings } from './query-embeddings.js';

/** Where texts are embedded, what of it is remembered and what it may cost. */
export type EmbeddingsModuleOptions = OpenAiEmbeddingOptions & {
  readonly cacheSize: number;
  /** Null: unbounded. */
  readonly budget: EmbeddingBudgetOptions | null;
};

/** Texts to vectors. Without options nothing is provided: a tool that needs `QueryEmbeddings` injects it optionally. */
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
