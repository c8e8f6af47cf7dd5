import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { LargeReads } from './large-reads.js';
import { SharedStateUnavailable } from './ports/stores.js';

describe('large reads', () => {
  it('of one principal come one after the other, and keep nobody else waiting', async () => {
    const reads = new LargeReads();
    const running = { greedy: 0, most: 0 };
    const ended: string[] = [];
    const greedy = Array.from({ length: 5 }, async () => {
      await reads.run('greedy', async () => {
        running.greedy += 1;
        running.most = Math.max(running.most, running.greedy);
        await pause(20);
        running.greedy -= 1;
      });
      ended.push('greedy');
    });
    await reads.run('neighbour', () => pause(20));
    ended.push('neighbour');
    await Promise.all(greedy);
    expect(running.most).toBe(1);
    expect(ended.indexOf('neighbour')).toBeLessThan(3);
  });

  it('that fail give their turn to the next one', async () => {
    const reads = new LargeReads();
    await expect(reads.run('one', () => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
    expect(await reads.run('one', () => Promise.resolve('read'))).toBe('read');
  });

  it('are refused as an outage where too many of one principal wait', async () => {
    const reads = new LargeReads();
    let give = (): void => undefined;
    const first = reads.run('greedy', () => new Promise<void>((resolve) => (give = resolve)));
    const waiting = Array.from({ length: 1_000 }, () => reads.run('greedy', () => Promise.resolve()));
    await expect(reads.run('greedy', () => Promise.resolve())).rejects.toThrow(SharedStateUnavailable);
    give();
    await Promise.all([first, ...waiting]);
  });
});
