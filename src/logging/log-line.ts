import type { LogLevel } from '@nestjs/common';

/** One line of the log, without credentials, and safe for a terminal. */
export interface LogLine {
  readonly level: LogLevel;
  readonly context: string;
  readonly message: string;
  readonly stack?: string;
  /** What it belongs to: trace, correlation. */
  readonly fields: Readonly<Record<string, string>>;
}

/** Writes lines somewhere, in one form. */
export type LineWriter = (line: LogLine) => void;
