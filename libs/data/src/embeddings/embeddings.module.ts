import { type DynamicModule, Inject, Injectable, Module } from '@nestjs/common';
import { EmbeddingProvider, OpenAiEmbeddings, type OpenAiEmbeddingOptions } from './openai-embeddings.js';
import { EmbeddingBudget, type EmbeddingBudgetOptions, QueryEmbeddings } from './query-embeddings.js';

/** The embeddings endpoint, the cache and the budget. */
export type EmbeddingsModuleOptions = OpenAiEmbeddingOptions & {
  readonly cacheSize: number;
  /** Null: unbounded. */
  readonly budget: EmbeddingBudgetOptions | null;
};

const EMBEDDING_OPTIONS = Symbol('options of embeddings');

@Injectable()
class ConfiguredEmbeddings extends OpenAiEmbeddings {
  constructor(
    @Inject(EMBEDDING_OPTIONS) { budget: _budget, cacheSize: _size, ...endpoint }: EmbeddingsModuleOptions,
  ) {
    super(endpoint);
  }
}

@Injectable()
class ConfiguredQueryEmbeddings extends QueryEmbeddings {
  constructor(
    provider: EmbeddingProvider,
    @Inject(EMBEDDING_OPTIONS) { cacheSize, budget }: EmbeddingsModuleOptions,
  ) {
    super(provider, { cacheSize, budget: budget && new EmbeddingBudget(budget) });
  }
}

/**
 * Converts texts to vectors. Without options nothing is provided: a tool that needs `QueryEmbeddings` injects it optionally.
 */
@Module({})
export class EmbeddingsModule {
  static register(options: EmbeddingsModuleOptions | null): DynamicModule {
    return options
      ? {
          module: EmbeddingsModule,
          providers: [
            { provide: EMBEDDING_OPTIONS, useValue: options },
            { provide: EmbeddingProvider, useClass: ConfiguredEmbeddings },
            { provide: QueryEmbeddings, useClass: ConfiguredQueryEmbeddings },
          ],
          exports: [EmbeddingProvider, QueryEmbeddings],
        }
      : { module: EmbeddingsModule };
  }
}
