import { FairQueue, type RedisSettings } from '#core';

export interface TaskQueueOptions extends RedisSettings {
  /** Concurrent runs in this process. Default 4. */
  readonly concurrency?: number;
  /** Milliseconds after which the run of a worker that died is assigned to another. Default 10,000. */
  readonly lockDuration?: number;
  readonly log: { warn(line: string): void };
}

/** A run that is due. */
export interface TaskJob {
  /** Id of the task. */
  readonly taskId: string;
  /** The number of the run, from 1 on. */
  readonly run: number;
  /** The principal whose task it is. */
  readonly owner: string;
}

/** Thrown by a handler that passes its run to another worker: this one is closing. */
export class TaskHandedOver extends Error {
  override readonly name = 'TaskHandedOver';
  constructor() {
    super('the run is handed over to another worker');
  }
}

/** The places for runs of a process: one principal leaves at least one of them to the others. Nobody waits in it. */
export const createRunPlaces = (concurrency: number): FairQueue =>
  new FairQueue({
    atOnce: concurrency,
    perKey: Math.max(1, concurrency - 1),
    waitingPerKey: 0,
    timeout: 0,
  });

export type TaskHandler = (job: TaskJob) => Promise<void>;

/**
 * Assigns runs to workers: each at least once, also when workers die; the record of a task decides what a run may still do.
 * Principals take turns, so that one with many tasks delays only its own.
 */
export abstract class TaskQueue {
  /** A job that is waiting or running already is not added again. @throws SharedStateUnavailable */
  abstract push(job: TaskJob): Promise<void>;
  /** Starts the processing. Called once. */
  abstract work(handler: TaskHandler): void;
  /** Whether jobs can be added now, checked on every call. Never rejects. */
  abstract isUp(): Promise<boolean>;
  /** Jobs that wait for a worker, on all replicas that share the queue. @throws when it is unknown */
  abstract countWaiting(): Promise<number>;
  /** Accepts no more jobs that other workers could take; resolves when the remaining local jobs have run. */
  abstract drain(): Promise<void>;
  /** Accepts no more jobs and waits a limited time for running handlers. */
  abstract close(): Promise<void>;
}
