export * from './agent-references.js';
export * from './open-task-queue.js';
export * from './process-task-queue.js';
export * from './stored-task-desk.js';
export * from './task-queue.js';
export * from './task-records.js';
export * from './task-settings.js';
export * from './task-worker.js';
