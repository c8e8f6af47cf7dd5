export * from './message-bus.contract.js';
export * from './one-time-store.contract.js';
export * from './port-under-test.js';
export * from './redis-room.js';
export * from './redis-server.js';
export * from './session-store.contract.js';
export * from './stream-log.contract.js';
export * from './subscription-book.contract.js';
