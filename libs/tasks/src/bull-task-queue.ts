import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type Job, Queue, WaitingError, Worker } from 'bullmq';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { SharedStateUnavailable } from '#state';
import {
  createRunPlaces,
  type TaskHandler,
  type TaskJob,
  TaskQueue,
  type TaskQueueOptions,
} from './task-queue.js';

/** Opens a connection of the queue's own: BullMQ blocks one of them. */
type Connect = (options: RedisOptions) => Redis | Cluster;

const NAME = 'tasks';
/** Maximum deaths of workers that one run survives. */
const MAX_DEATHS = 5;
/** Milliseconds in which a job must be added. */
const COMMAND_TIMEOUT = 500;
/** Milliseconds in which runs must end at the close, and then again the connections; and a worker pauses once its runs have ended. */
const SHUTDOWN_TIMEOUT = 1_500;

/** Seconds for which the open jobs of a principal are counted after its last one. */
const COUNTED_SECONDS = 3_600;
/** The lowest priority of BullMQ. */
const MAX_PRIORITY = 2_097_151;
/** Milliseconds that a place is held before a job goes back whose principal has its share of the places here. */
const HAND_BACK = 100;

/** A queue on BullMQ, for every replica that uses the same Redis. */
export class BullTaskQueue extends TaskQueue {
  private readonly connection: Redis | Cluster;
  private readonly queue: Queue<TaskJob>;
  private worker: Worker<TaskJob> | undefined;
  private readonly runs = new Set<Promise<void>>();

  constructor(
    private readonly options: Pick<TaskQueueOptions, 'prefix' | 'concurrency' | 'lockDuration' | 'log'>,
    private readonly open: Connect,
  ) {
    super();
    this.connection = this.connect({
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: COMMAND_TIMEOUT,
    });
    this.queue = new Queue(NAME, {
      connection: this.connection,
      prefix: this.prefix,
      skipVersionCheck: true,
      // Finished jobs are not read; BullMQ itself would keep ten thousand permanently.
      streams: { events: { maxLen: 100 } },
    });
    this.queue.on('error', () => undefined);
  }

  async push(job: TaskJob): Promise<void> {
    const expired = new AbortController();
    try {
      await Promise.race([this.add(job, expired.signal), this.noAnswer(expired.signal)]);
    } catch (error) {
      throw new SharedStateUnavailable(error instanceof Error ? new Error(error.message) : undefined);
    } finally {
      expired.abort();
    }
  }

  private async add(job: TaskJob, signal: AbortSignal): Promise<void> {
    // The client of a cluster would keep the command, and send it after the caller was refused.
    if (!this.isConnected) await once(this.connection, 'ready', { signal });
    const jobId = toJobId(job);
    await this.queue.add('run', job, {
      jobId,
      // The first jobs of all principals go before the second ones.
      priority: Math.min(await this.countOpen(job.owner, jobId), MAX_PRIORITY),
      attempts: MAX_DEATHS,
      removeOnComplete: true,
      removeOnFail: true,
    });
  }

  /** How many jobs of a principal wait or run, this one included. */
  private async countOpen(owner: string, jobId: string): Promise<number> {
    await this.queue.waitUntilReady();
    const key = this.openKey(owner);
    const answers = await this.connection
      .pipeline()
      .sadd(key, jobId)
      .expire(key, COUNTED_SECONDS)
      .scard(key)
      .exec();
    const [error, count] = answers?.at(-1) ?? [];
    if (error) throw error;
    return Number(count);
  }

  /** A count that is too high only makes the next jobs of the principal wait longer. */
  private async removeOpen(job: TaskJob): Promise<void> {
    await this.connection.srem(this.openKey(job.owner), toJobId(job)).catch(() => undefined);
  }

  private openKey(owner: string): string {
    return `${this.prefix}:${NAME}:of:${createHash('sha256').update(owner).digest('base64url')}`;
  }

  /** The client of one server refuses by itself what it cannot send. */
  private get isConnected(): boolean {
    return this.connection.status === 'ready' || !('nodes' in this.connection);
  }

  private async noAnswer(signal: AbortSignal): Promise<never> {
    await pause(2 * COMMAND_TIMEOUT, undefined, { signal });
    throw new Error('the queue does not answer');
  }

  work(handler: TaskHandler): void {
    const { lockDuration = 10_000, concurrency = 4, log } = this.options;
    const places = createRunPlaces(concurrency);
    const run = async (job: Job<TaskJob>, token = '') => {
      const { data } = job;
      const leave = places.turnNow(data.owner);
      if (!leave) return handBack(job, token);
      try {
        await this.followRun(holdJob(job, token, lockDuration, handler(data)));
      } finally {
        leave();
      }
      await this.removeOpen(data);
    };
    this.worker = new Worker<TaskJob>(NAME, run, {
      connection: this.connect({ maxRetriesPerRequest: null }),
      prefix: this.prefix,
      concurrency,
      lockDuration,
      // BullMQ renews by the clock of the machine: set back, it would lose the locks of what runs.
      skipLockRenewal: true,
      stalledInterval: lockDuration / 2,
      maxStalledCount: MAX_DEATHS,
      skipVersionCheck: true,
    });
    let away = false;
    this.worker.on('error', ({ message }) => {
      if (!away) log.warn(`the queue is unavailable: ${message}`);
      away = true;
    });
    this.worker.on('active', () => (away = false));
  }

  /** A disconnected connection fails at once, one that hangs after a timeout. */
  async isUp(): Promise<boolean> {
    if (!this.isConnected) return false;
    try {
      await this.connection.ping();
      return true;
    } catch {
      return false;
    }
  }

  countWaiting(): Promise<number> {
    return this.queue.getJobCountByTypes('waiting', 'prioritized');
  }

  /** Of a worker that waits for a connection, as without its Redis, only the runs count. */
  async drain(): Promise<void> {
    if (!this.worker) return;
    const drained = new AbortController();
    const ended = this.endRuns(drained.signal);
    try {
      await Promise.race([this.worker.pause().catch(() => ended), ended]);
    } finally {
      drained.abort();
    }
  }

  /** Resolves when no run is left, nor begins in a while: a job may have been taken just before. */
  private async endRuns(signal: AbortSignal): Promise<void> {
    do {
      await Promise.allSettled(this.runs);
      await pause(SHUTDOWN_TIMEOUT, undefined, { signal });
    } while (this.runs.size > 0);
  }

  /** Ends within a few seconds, whatever Redis does: other workers find unreported jobs as stalled. */
  async close(): Promise<void> {
    // A run that is handed over goes back to the queue at once: not to this worker again.
    void this.worker?.pause(true).catch(() => undefined);
    await Promise.race([Promise.allSettled(this.runs), pause(SHUTDOWN_TIMEOUT)]);
    const force = !(await this.isUp());
    const closed = Promise.allSettled([this.worker?.close(force), this.queue.close()]);
    await Promise.race([closed, pause(SHUTDOWN_TIMEOUT)]);
    this.connection.disconnect();
  }

  private followRun(run: Promise<void>): Promise<void> {
    this.runs.add(run);
    const forgetRun = () => void this.runs.delete(run);
    run.then(forgetRun, forgetRun);
    return run;
  }

  private get prefix(): string {
    return `{${this.options.prefix ?? 'parley'}}`;
  }

  private connect(options: RedisOptions): Redis | Cluster {
    const client = this.open({ connectTimeout: 1_000, ...options });
    client.on('error', () => undefined);
    return client;
  }
}

/** BullMQ reserves colons. */
const toJobId = ({ taskId, run }: TaskJob) => `${taskId}.${run}`;

/** For another worker, or for this one when a run of the principal has ended. */
async function handBack(job: Job<TaskJob>, token: string): Promise<never> {
  await pause(HAND_BACK);
  await job.moveToWait(token);
  throw new WaitingError();
}

/** Keeps the lock of a job while it runs: without it another worker would take the job for stalled. */
async function holdJob(
  job: Job<TaskJob>,
  token: string,
  duration: number,
  run: Promise<void>,
): Promise<void> {
  // A renewal that fails is tried again; one that comes too late changes nothing.
  const renewal = setInterval(
    () => void job.extendLock(token, duration).catch(() => undefined),
    duration / 4,
  );
  try {
    await run;
  } finally {
    clearInterval(renewal);
  }
}
