import type { DestinationStream } from 'pino';
import type { LineWriter } from './log-line.js';

/** Milliseconds that a line about a call waits for others. */
const PATIENCE = 10;
/** Characters that wait at most. */
const MOST = 65_536;

/**
 * Lines that every call leaves, written together: a write costs as much as a good part of a call. Anything else, and every
 * warning, is written at once and takes along what waits before it; so does the end of the process.
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
    if (waits) timer ??= setTimeout(flush, PATIENCE).unref();
    else flush();
  };
}
