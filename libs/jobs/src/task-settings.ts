/** Times of tasks, in milliseconds. */
export interface TaskSettings {
  /** How long a task and its result are kept from its last change on. Default an hour. */
  readonly lifetime: number;
  /** How often a client is told to ask. Default 1,000. */
  readonly pollInterval: number;
  /** How often a run says that it is alive; one that was silent five times as long is given to a worker anew. Default 5,000. */
  readonly heartbeat: number;
}

export const DEFAULT_TASKS: TaskSettings = Object.freeze({
  lifetime: 3_600_000,
  pollInterval: 1_000,
  heartbeat: 5_000,
});

/** Topics on the message bus. */
export const CANCELLED = 'tasks.cancelled';
export const ENDED = 'tasks.ended';
