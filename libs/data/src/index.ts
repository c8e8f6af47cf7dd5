export {
  ANSWER_MEMORY,
  type AnswerInFlight,
  type AnswerLeft,
  answerLeft,
  AnswerMemory,
  type AnswerMemoryOptions,
  type AnswerRequest,
  MAX_ANSWER_BYTES,
  MIN_VALUE_BYTES,
} from './answers/answer-memory.js';
export { PlacedRows, valueWeight } from './answers/placed-rows.js';
export {
  ChangeFeed,
  ChangeSource,
  type RowChange,
  type RowView,
  RowViews,
  type SourceEvent,
  SourceRefused,
  type WatchedOperation,
} from './change-feed.js';
export {
  type AggregateOptions,
  type AggregateResult,
  type AutocompleteRequest,
  type Completions,
  type CountedFacets,
  type FacetRequest,
  type FindOptions,
  type GovernedClass,
  type GovernedClassWrites,
  type GovernedMethods,
  type GovernedRecords,
  type GovernedSearch,
  type GovernedWrites,
  type JudgedWrite,
  type VectorFilters,
  type LikenessSearch,
  type NearestRequest,
  type ProposedWrite,
  type RowPage,
  type TextSearchRequest,
  type WriteOptions,
} from './governed-access.js';
export * from './record-search.js';
export * from './record-store.js';
export {
  type CatalogueOptions,
  ClassSchemas,
  type NewClass,
  NO_PERMISSIONS,
  RenewedCatalogue,
  SchemaCatalogue,
  SchemaWriter,
} from './schema-store.js';
export * from './write-keys.js';
export {
  type CallBudget,
  GovernedRecordsSource,
  GovernedSearchSource,
  GovernedWritesSource,
} from './governed/governed-sources.js';
export { DatabaseTurns, type DatabaseTurnsOptions } from './metering/metered-stores.js';
export { GovernedViews } from './governed/governed-views.js';
export {
  CachedPrincipalDirectory,
  type DirectoryCacheOptions,
  ForgettingWriter,
  MAX_ROLE_DEPTH,
  PrincipalDirectory,
  type SessionOwner,
} from './identity/principal-directory.js';
export {
  type ImpersonateOptions,
  Impersonation,
  ImpersonationError,
  type ImpersonationTimes,
  UserSessions,
} from './identity/impersonation.js';
export { PrincipalResolver } from './identity/principal-resolver.js';
export { ExpiringCache } from './identity/expiring-cache.js';
export {
  EmbeddingBudget,
  type EmbeddingBudgetOptions,
  type QueryEmbedding,
  type QueryEmbeddingOptions,
  QueryEmbeddings,
} from './embeddings/query-embeddings.js';
export {
  type Embedding,
  EmbeddingError,
  EmbeddingProvider,
  estimatedTokens,
  isAllowedEndpoint,
  isSafeTransport,
  type OpenAiEmbeddingOptions,
  OpenAiEmbeddings,
} from './embeddings/openai-embeddings.js';
export * from './data.module.js';
export { WrittenClasses } from './written-classes.js';
export { EmbeddingsModule, type EmbeddingsModuleOptions } from './embeddings/embeddings.module.js';
