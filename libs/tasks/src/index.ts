export * from './open-task-queue.js';
export * from './stored-task-service.js';
export * from './task-queue.js';
export { type ListedTask, TaskOverview } from './task-records.js';
export * from './task-worker.js';
export * from './tasks.module.js';
