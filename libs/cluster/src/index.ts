export * from './message-bus.js';
export * from './one-time-store.js';
export * from './process-session-store.js';
export * from './session-store.js';
export * from './session-streams.js';
export * from './shared-state-unavailable.js';
export * from './stream-log.js';
