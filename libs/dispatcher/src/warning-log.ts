import { oneLine } from '#audit';

/** Where private causes go. One line per call; never sent to a client. */
export interface WarningLog {
  warn(message: string): void;
}

/** Class and message of anything that was thrown, for the log alone. */
export function faultLine(prefix: string, fault: unknown): string {
  if (!(fault instanceof Error)) return `${prefix} ${oneLine(typeof fault)}`;
  return `${prefix} ${oneLine(fault.name)}: ${oneLine(fault.message)}`;
}
