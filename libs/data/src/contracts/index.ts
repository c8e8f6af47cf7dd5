export * from './change-feed.contract.js';
export * from './music-classes.js';
export * from './music-seed.js';
export * from './operation.js';
export * from './record-reader.contract.js';
export * from './record-writer.contract.js';
export * from './schema-catalogue.contract.js';
export * from './schema-writer.contract.js';
