export {
  ANSWER_MEMORY,
  type AnswerInFlight,
  type AnswerLeft,
  answerLeft,
  AnswerMemory,
  MAX_ANSWER_BYTES,
  MIN_VALUE_BYTES,
  PlacedRows,
} from './answers/answer-memory.js';
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
  type Completions,
  type CountedFacets,
  type FindOptions,
  type GovernedClass,
  type GovernedClassWrites,
  type GovernedMethods,
  type GovernedRecords,
  type GovernedSearch,
  type GovernedWrites,
  type JudgedWrite,
  type VectorFilters,
  type SimilaritySearch,
  type NearestRequest,
  type ProposedWrite,
  type RowPage,
  type TextSearchRequest,
  type WriteOptions,
} from './governed-access.js';
export * from './changes/change-sets.js';
export { MemoryChangeSets } from './changes/memory-change-sets.js';
export { RecordedWrites, WriteRecorder } from './changes/recorded-writes.js';
export * from './changes/row-transactions.js';
export type { ChangeViews, ReviewedChange, ViewedChange } from './governed/change-views.js';
export type { AppliedChange, ChangeConflict, HeldChange } from './governed/held-change.js';
export { ParleyChanges } from './governed/parley-changes.js';
export { ConflictingChanges } from './governed/transacted-changes.js';
export { firstRows, RecordReader, RecordWriter } from './record-adapters.js';
export * from './record-search.js';
export * from './record-store.js';
export {
  type CatalogueOptions,
  ClassSchemas,
  describeClasses,
  type NewClass,
  NO_PERMISSIONS,
  RenewedCatalogue,
  SchemaCatalogue,
  SchemaWriter,
  WrittenClasses,
} from './schema-store.js';
export * from './write-keys.js';
export {
  type CallBudget,
  GovernedChangesSource,
  GovernedRecordsSource,
  GovernedSearchSource,
  GovernedViews,
  GovernedWritesSource,
} from './governed/governed-sources.js';
export { type ClassUse, ClassUses, ClassUsesSource } from './governed/class-uses.js';
export { DatabaseTurns } from './metering/metered-stores.js';
export {
  CachedPrincipalDirectory,
  forgettingWrites,
  MAX_ROLE_DEPTH,
  PrincipalDirectory,
  type SessionOwner,
  USER_FIELDS,
  type UserField,
} from './identity/principal-directory.js';
export {
  type ImpersonateOptions,
  Impersonation,
  ImpersonationError,
  UserSessions,
} from './identity/impersonation.js';
export { PrincipalResolver } from './identity/principal-resolver.js';
export { QueryEmbeddings } from './embeddings/query-embeddings.js';
export {
  type Embedding,
  EmbeddingProvider,
  estimateTokens,
  isAllowedEndpoint,
  isSafeTransport,
} from './embeddings/openai-embeddings.js';
export * from './data.module.js';
export { EMBEDDING_OPTIONS, EmbeddingsModule } from './embeddings/embeddings.module.js';
export { StoresModule } from './stores.module.js';
