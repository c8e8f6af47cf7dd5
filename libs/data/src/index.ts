export { type AnswerLeft, answerLeft, MAX_ANSWER_BYTES, MIN_VALUE_BYTES } from './answers/answer-limits.js';
export {
  ANSWER_MEMORY,
  type AnswerInFlight,
  AnswerMemory,
  type AnswerMemoryOptions,
  type AnswerRequest,
} from './answers/answer-memory.js';
export { PlacedRows } from './answers/placed-rows.js';
export { valueWeight } from './answers/value-weight.js';
export * from './change-feed.js';
export * from './change-source.js';
export * from './governed-methods.js';
export * from './governed-records.js';
export * from './governed-search.js';
export * from './governed-writes.js';
export * from './record-search.js';
export * from './record-store.js';
export * from './renewed-catalogue.js';
export * from './row-view.js';
export * from './schema-catalogue.js';
export * from './schema-writer.js';
export * from './write-keys.js';
export type { CallBudget } from './governed/operation.js';
export { DatabaseTurns, type DatabaseTurnsOptions } from './metering/database-turns.js';
export { GovernedRecordsSource } from './governed/records-source.js';
export { GovernedViews } from './governed/governed-views.js';
export { GovernedSearchSource } from './governed/search-source.js';
export { GovernedWritesSource } from './governed/writes-source.js';
export { CachedPrincipalDirectory, type DirectoryCacheOptions } from './identity/cached-directory.js';
export { ForgettingWriter } from './identity/forgetting-writer.js';
export {
  type ImpersonateOptions,
  Impersonation,
  ImpersonationError,
  type ImpersonationTimes,
} from './identity/impersonation.js';
export { MAX_ROLE_DEPTH, PrincipalDirectory, type SessionOwner } from './identity/principal-directory.js';
export { PrincipalResolver } from './identity/principal-resolver.js';
export { UserSessions } from './identity/user-sessions.js';
export { ExpiringCache } from './identity/expiring-cache.js';
