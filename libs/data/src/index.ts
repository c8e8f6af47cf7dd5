export * from './change-feed.js';
export * from './governed-records.js';
export * from './record-store.js';
export * from './schema-catalogue.js';
