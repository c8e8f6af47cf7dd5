import type { LogLevel } from '@nestjs/common';
import type { DestinationStream } from 'pino';

/** One log line, without credentials, and safe for a terminal. */
export interface LogLine {
  readonly level: LogLevel;
  readonly context: string;
  readonly message: string;
  readonly stack?: string;
  /** Context of the line: trace, correlation. */
  readonly fields: Readonly<Record<string, string>>;
}

/** Writes lines in one format. */
export type LineWriter = (line: LogLine) => void;

/** Lines for people: time, level, source, message and context. */
export function plainLines(write: (text: string) => void): LineWriter {
  return ({ level, context, message, stack, fields }) => {
    const members = Object.entries(fields).map(([name, value]) => ` ${name}=${value}`);
    const where = context === '' ? '' : `[${context}] `;
    const name = level === 'log' ? 'INFO' : level.toUpperCase();
    const after = stack === undefined ? '' : ` | ${stack}`;
    write(`${new Date().toISOString()} ${name.padStart(5)} ${where}${message}${members.join('')}${after}\n`);
  };
}

/** Milliseconds that a line about a call waits for others. */
const GATHERING = 10;
/** Maximum characters that wait. */
const MOST = 65_536;

/**
 * Batches the lines of calls, because a write costs a considerable part of a call. Other lines and warnings are written
 * at once, after the waiting lines. The end of the process writes the waiting lines too.
 */
export function gatheredLines(
  form: (destination: DestinationStream) => LineWriter,
  destination: DestinationStream,
): LineWriter {
  let held = '';
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const lines = held;
    held = '';
    if (lines !== '') destination.write(lines);
  };
  const write = form({ write: (text) => (held += text) });
  process.once('exit', flush);
  return (line) => {
    write(line);
    const waits = line.context === 'Audit' && line.level === 'log' && held.length < MOST;
    if (waits) timer ??= setTimeout(flush, GATHERING).unref();
    else flush();
  };
}
