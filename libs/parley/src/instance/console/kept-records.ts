import type { CallStatistics, LiveRecords } from '#console';

/** What the console keeps of the records of this process, from the start on. */
export interface KeptRecords {
  /** Receives all records. */
  readonly live: LiveRecords;
  /** Counts all calls. */
  readonly statistics: CallStatistics;
}
