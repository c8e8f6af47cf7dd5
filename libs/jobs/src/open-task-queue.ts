import { ProcessTaskQueue } from './process-task-queue.js';
import type { TaskQueue } from './task-queue.js';

export interface TaskQueueOptions {
  /** Of Redis; null: this process's memory. */
  readonly url: string | null;
  /** What every key begins with. Default `parley`. */
  readonly prefix?: string;
  /** Runs at once in this process. Default 4. */
  readonly concurrency?: number;
  /** Milliseconds after which the run of a worker that died is given to another. Default 10,000. */
  readonly lockDuration?: number;
  readonly log: { warn(line: string): void };
}

/** Opens the queue that replicas share; BullMQ is loaded only when there is a Redis. */
export async function openTaskQueue({ url, concurrency, ...options }: TaskQueueOptions): Promise<TaskQueue> {
  if (url === null) return new ProcessTaskQueue(concurrency);
  const { BullTaskQueue } = await import('./bull-task-queue.js');
  return new BullTaskQueue({ url, ...(concurrency !== undefined && { concurrency }), ...options });
}
