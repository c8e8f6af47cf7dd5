export * from './change-feed.js';
export * from './governed-records.js';
export * from './record-store.js';
export * from './schema-catalogue.js';
export { type CallBudget, maxTimeMs } from './governed/operation.js';
export { GovernedRecordsSource } from './governed/records-source.js';
export { CachedPrincipalDirectory, type DirectoryCacheOptions } from './identity/cached-directory.js';
export { MAX_ROLE_DEPTH, PrincipalDirectory, type SessionOwner } from './identity/principal-directory.js';
export { PrincipalResolver } from './identity/principal-resolver.js';
