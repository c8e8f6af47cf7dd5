import { describe, expect, it } from 'vitest';
import { closeWithin } from './closing.js';

const collectLog = () => {
  const lines: string[] = [];
  return { lines, log: { warn: (line: string) => void lines.push(line) } };
};

describe('closing', () => {
  it('goes in order, and waits for each', async () => {
    const order: string[] = [];
    const { lines, log } = collectLog();
    await closeWithin(
      60_000,
      [
        ['one', () => new Promise((resolve) => setImmediate(() => resolve(order.push('one'))))],
        ['nothing', () => undefined],
        ['two', () => Promise.resolve(order.push('two'))],
      ],
      log,
    );
    expect(order).toEqual(['one', 'two']);
    expect(lines).toEqual([]);
  });

  it('gives later ones their turn after one that fails or never ends, and names it without its words', async () => {
    const { lines, log } = collectLog();
    const closed: string[] = [];
    await closeWithin(
      5,
      [
        ['thrower', () => Promise.reject(new RangeError('mongodb://user:secret@db'))],
        ['sleeper', () => new Promise(() => undefined)],
        ['last', () => Promise.resolve(closed.push('last'))],
      ],
      log,
    );
    expect(closed).toEqual(['last']);
    expect(lines.slice(0, 2)).toEqual([
      'thrower could not be closed: RangeError',
      'sleeper did not close in time and is left behind',
    ]);
    expect(lines.join()).not.toContain('secret');
  });
});
