export * from './process-session-store.js';
export * from './session-store.js';
