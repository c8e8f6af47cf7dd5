import type { Provider } from '@nestjs/common';
import {
  EmbeddingBudget,
  EmbeddingProvider,
  GovernedRecordsSource,
  GovernedSearchSource,
  OpenAiEmbeddings,
  QueryEmbeddings,
  RecordSearcher,
} from '#data';
import type { EmbeddingsConfig } from '#config';

/**
 * Search by words and likeness; texts can be embedded only where an endpoint is configured.
 * @param listed the operator lists the endpoints that are allowed
 */
export function searchProviders(embeddings: EmbeddingsConfig | null, listed: boolean): Provider[] {
  return [
    {
      provide: GovernedSearchSource,
      useFactory: (records: GovernedRecordsSource, searcher: RecordSearcher) =>
        new GovernedSearchSource(records, searcher),
      inject: [GovernedRecordsSource, RecordSearcher],
    },
    ...(embeddings ? embeddingProviders(embeddings, listed) : []),
  ];
}

function embeddingProviders(
  { budget, cacheSize, ...options }: EmbeddingsConfig,
  listed: boolean,
): Provider[] {
  return [
    { provide: EmbeddingProvider, useFactory: () => new OpenAiEmbeddings({ ...options, listed }) },
    {
      provide: QueryEmbeddings,
      useFactory: (provider: EmbeddingProvider) =>
        new QueryEmbeddings(provider, { cacheSize, budget: budget && new EmbeddingBudget(budget) }),
      inject: [EmbeddingProvider],
    },
  ];
}
