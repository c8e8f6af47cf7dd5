export * from './sample-records.js';
