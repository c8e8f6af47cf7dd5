/** Calls that go on after their answer (docs/tasks.md). */
export interface TaskConfig {
  /** Seconds that a task is kept after its last change. Default 3600. */
  readonly lifetime: number;
  /** Seconds between two questions of a client. Default 1. */
  readonly pollInterval: number;
  /** Seconds between two signs of life of a run; after two without one it is given to another worker. Default 5. */
  readonly heartbeat: number;
  /** Runs at once in this process. Default 4. */
  readonly concurrency: number;
  /** That one principal may begin within a lifetime, on all replicas together. Default 1000. */
  readonly maxPerPrincipal: number;
}

/** Exports that are fetched after they were asked for (docs/exports.md). */
export interface ExportConfig {
  /** Seconds that one can be fetched. Default 3600. */
  readonly lifetime: number;
  /** Rows that none goes beyond. Default 1,000,000. */
  readonly maxRows: number;
  /** That one principal may have at once; the oldest gives way. Default 20. */
  readonly maxPerPrincipal: number;
}

export const DEFAULT_TASK_CONFIG: TaskConfig = Object.freeze({
  lifetime: 3600,
  pollInterval: 1,
  heartbeat: 5,
  concurrency: 4,
  maxPerPrincipal: 1000,
});

export const DEFAULT_EXPORT_CONFIG: ExportConfig = Object.freeze({
  lifetime: 3600,
  maxRows: 1_000_000,
  maxPerPrincipal: 20,
});
