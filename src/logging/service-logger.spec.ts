import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { gatherLines, type LineWriter, type LogLine, writeUnlessUnread } from './service-logger.js';

function writing(): { write: LineWriter; written: string[] } {
  const written: string[] = [];
  const write = gatherLines(
    (destination) =>
      ({ level, message }) =>
        destination.write(`${level} ${message}\n`),
    { write: (text) => written.push(text) },
  );
  return { write, written };
}

const line = (level: LogLine['level'], context: string, message: string): LogLine => ({
  level,
  context,
  message,
  fields: {},
});

describe('lines of the log that every call leaves', () => {
  it('are written together, a moment later', async () => {
    const { write, written } = writing();
    write(line('log', 'Audit', 'one'));
    write(line('warn', 'Audit', 'refused'));
    write(line('log', 'Audit', 'three'));
    expect(written).toEqual([]);
    await expect.poll(() => written).toEqual(['log one\nwarn refused\nlog three\n']);
  });

  it.each([
    ['a warning about anything else', line('warn', 'Parley', 'slow')],
    ['a line about anything else', line('log', 'Parley', 'ready')],
    ['an error', line('error', 'Audit', 'broken')],
    ['a whole record', line('debug', 'Audit', '{}')],
  ])('are written before %s, which does not wait', (_, urgent) => {
    const { write, written } = writing();
    write(line('log', 'Audit', 'before'));
    write(urgent);
    expect(written).toEqual([`log before\n${urgent.level} ${urgent.message}\n`]);
  });

  it('never pile up: more than a write can hold is written at once', () => {
    const { write, written } = writing();
    write(line('log', 'Audit', 'x'.repeat(70_000)));
    expect(written).toHaveLength(1);
  });

  it('are written at the end of the process', () => {
    const { write, written } = writing();
    write(line('log', 'Audit', 'last'));
    for (const end of process.listeners('exit').slice(-1)) end.call(process, 0);
    expect(written).toEqual(['log last\n']);
  });
});

describe('a log that nobody reads', () => {
  it('keeps what fits, and says how many lines are lost once it is read', () => {
    const read: string[] = [];
    let proceed = (): void => undefined;
    const output = new Writable({
      decodeStrings: false,
      write: (chunk: string, _encoding, done) => {
        read.push(chunk);
        proceed = done;
      },
    });
    const write = writeUnlessUnread(output);
    const kept = `${'x'.repeat(2_000_000)}\n`;
    write(kept);
    write('lost\n');
    write('lost\nlost too\n');
    proceed();
    write('after\n');
    proceed();
    expect(read).toEqual([kept, expect.stringContaining('3 lines of the log are lost'), 'after\n']);
  });
});
