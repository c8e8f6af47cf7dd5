import { type FairQueue, hasRedis } from '#core';
import { loadRedisClient } from '#state';
import {
  createRunPlaces,
  type TaskHandler,
  type TaskJob,
  TaskQueue,
  type TaskQueueOptions,
} from './task-queue.js';

/** A queue in this process's memory: its jobs are lost with it, and no other replica processes them. */
export class ProcessTaskQueue extends TaskQueue {
  /** By principal and name, in the order in which the principals are served. */
  private readonly waiting = new Map<string, Map<string, TaskJob>>();
  private readonly running = new Map<string, Promise<void>>();
  private readonly places: FairQueue;
  private handler: TaskHandler | undefined;
  private closing = false;

  /** @param concurrency concurrent runs. Default 4 */
  constructor(concurrency = 4) {
    super();
    this.places = createRunPlaces(concurrency);
  }

  push(job: TaskJob): Promise<void> {
    const name = `${job.taskId}.${job.run}`;
    if (!this.running.has(name))
      this.waiting.set(job.owner, (this.waiting.get(job.owner) ?? new Map<string, TaskJob>()).set(name, job));
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
    return Promise.resolve([...this.waiting.values()].reduce((sum, { size }) => sum + size, 0));
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
    for (let taken = this.take(); taken; taken = this.take()) {
      const { name, job, leave } = taken;
      const run = handler(job)
        .catch(() => undefined)
        .finally(() => {
          this.running.delete(name);
          leave();
          this.next();
        });
      this.running.set(name, run);
    }
  }

  /** The next job of the principal whose turn it is, which then moves to the end of the order. */
  private take(): { readonly name: string; readonly job: TaskJob; leave(): void } | null {
    for (const [owner, jobs] of this.waiting) {
      const [next] = jobs;
      const leave = next && this.places.turnNow(owner);
      if (!leave) continue;
      const [name, job] = next;
      jobs.delete(name);
      this.waiting.delete(owner);
      if (jobs.size > 0) this.waiting.set(owner, jobs);
      return { name, job, leave };
    }
    return null;
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
