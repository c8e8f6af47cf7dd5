import type { LogLevel } from '@nestjs/common';
import { type DestinationStream, pino } from 'pino';
import type { LineWriter } from './log-lines.js';

const LEVELS = {
  verbose: 'trace',
  debug: 'debug',
  log: 'info',
  warn: 'warn',
  error: 'error',
  fatal: 'fatal',
} as const satisfies Record<LogLevel, string>;

/** One JSON object to a line, for whatever collects logs. */
export function jsonLines(destination: DestinationStream): LineWriter {
  const log = pino(
    {
      // Levels are decided before a line is made.
      level: 'trace',
      base: { pid: process.pid },
      messageKey: 'message',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (level) => ({ level }) },
    },
    destination,
  );
  return ({ level, context, message, stack, fields }) => {
    const members = { ...(context !== '' && { context }), ...fields, ...(stack !== undefined && { stack }) };
    log[LEVELS[level]](members, message);
  };
}
