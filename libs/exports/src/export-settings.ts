export interface ExportSettings {
  /** Milliseconds that an export can be fetched. Default an hour. */
  readonly lifetime: number;
  /** Rows that no export goes beyond: one that would is broken off. Default 1,000,000. */
  readonly maxRows: number;
  /** Exports that one owner may have at once; the oldest gives way. Default 20. */
  readonly maxPerOwner: number;
}

export const DEFAULT_EXPORTS: ExportSettings = Object.freeze({
  lifetime: 3_600_000,
  maxRows: 1_000_000,
  maxPerOwner: 20,
});

/** Rows that are read, judged and written at once. */
export const BATCH_ROWS = 1000;
/** Seconds that one batch may take. */
export const BATCH_SECONDS = 60;
