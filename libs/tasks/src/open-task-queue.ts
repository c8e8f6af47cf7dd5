import { hasRedis } from '#core';
import { loadRedisClient } from '#state';
import { type TaskHandler, type TaskJob, TaskQueue, type TaskQueueOptions } from './task-queue.js';

/** A queue in this process's memory: its jobs are lost with it, and no other replica processes them. */
export class ProcessTaskQueue extends TaskQueue {
  private readonly jobs = new Map<string, TaskJob>();
  private readonly running = new Map<string, Promise<void>>();
  private handler: TaskHandler | undefined;
  private closing = false;

  /** @param concurrency concurrent runs. Default 4 */
  constructor(private readonly concurrency = 4) {
    super();
  }

  push(job: TaskJob): Promise<void> {
    const name = `${job.taskId}.${job.run}`;
    if (!this.running.has(name)) this.jobs.set(name, job);
    this.next();
    return Promise.resolve();
  }

  work(handler: TaskHandler): void {
    this.handler = handler;
    this.next();
  }

  isUp(): Promise<boolean> {
    return Promise.resolve(!this.closing);
  }

  countWaiting(): Promise<number> {
    return Promise.resolve(this.jobs.size);
  }

  /** No other worker can take the waiting jobs, so they run as well. */
  async drain(): Promise<void> {
    while (this.handler && this.running.size > 0) await Promise.allSettled(this.running.values());
  }

  async close(): Promise<void> {
    this.closing = true;
    await Promise.allSettled(this.running.values());
  }

  private next(): void {
    const { handler } = this;
    if (!handler || this.closing) return;
    for (const [name, job] of this.jobs) {
      if (this.running.size >= this.concurrency) return;
      this.jobs.delete(name);
      const run = handler(job)
        .catch(() => undefined)
        .finally(() => {
          this.running.delete(name);
          this.next();
        });
      this.running.set(name, run);
    }
  }
}

/** Opens the queue that replicas share; BullMQ is loaded only when there is a Redis. */
export async function openTaskQueue(options: TaskQueueOptions): Promise<TaskQueue> {
  if (!hasRedis(options)) return new ProcessTaskQueue(options.concurrency);
  const [{ BullTaskQueue }, { createRedisClient }] = await Promise.all([
    import('./bull-task-queue.js'),
    loadRedisClient(),
  ]);
  return new BullTaskQueue(options, (connection) => createRedisClient(options, connection));
}
