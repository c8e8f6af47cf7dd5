/** Times of tasks, in milliseconds. */
export interface TaskSettings {
  /** How long a task and its result are kept from its last change on. */
  readonly lifetime: number;
  /** How often a client is told to ask. */
  readonly pollInterval: number;
  /** How often a run says that it is alive; one that was silent five times as long is queued again when its client asks. */
  readonly heartbeat: number;
}

/** Topics on the message bus. */
export const CANCELLED = 'tasks.cancelled';
export const ENDED = 'tasks.ended';
