/** A run that is due. */
export interface TaskJob {
  /** Whose run it is. */
  readonly taskId: string;
  /** Which run of the task, from 1 on. */
  readonly run: number;
}

/** Thrown by a handler that hands its run over to another worker: this one is closing. */
export class HandedOver extends Error {
  override readonly name = 'HandedOver';
  constructor() {
    super('the run is handed over to another worker');
  }
}

export type TaskHandler = (job: TaskJob) => Promise<void>;

/** Hands runs to workers: each at least once, also when workers die; the record of a task decides what a run may still do. */
export abstract class TaskQueue {
  /** A job that is waiting or running already is not added again. @throws SharedStateUnavailable */
  abstract push(job: TaskJob): Promise<void>;
  /** Begins to work. Called once. */
  abstract work(handler: TaskHandler): void;
  /** Whether jobs can be handed over at this moment, asked anew. Never rejects. */
  abstract isUp(): Promise<boolean>;
  /** Jobs that wait for a worker, on all replicas that share the queue. @throws when it is unknown */
  abstract waiting(): Promise<number>;
  /** Takes no more jobs that other workers could take; resolves when those that are left here have run. */
  abstract drain(): Promise<void>;
  /** Takes no more jobs and waits a while for the handlers that run. */
  abstract close(): Promise<void>;
}
