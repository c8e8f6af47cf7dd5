export * from './change-feed.js';
export * from './governed-records.js';
export * from './record-store.js';
export * from './schema-catalogue.js';
export { type CallBudget, maxTimeMs } from './governed/operation.js';
export { GovernedRecordsSource } from './governed/records-source.js';
