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

/** One JSON object per line, for log collectors. */
export function jsonLines(destination: DestinationStream): LineWriter {
  const log = pino(
    {
      // The level is checked before a line is created.
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
