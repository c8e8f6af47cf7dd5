import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { startRedis } from '#state/contracts';
import { openTaskQueue } from './open-task-queue.js';

describe('a queue whose Redis stops while it is drained', () => {
  it.each([0, 2, 5, 10, 30])('ends within seconds, %i ms later', async (delay) => {
    const server = await startRedis();
    const queue = await openTaskQueue({
      url: server.url,
      prefix: `parley-test-${randomUUID()}`,
      log: { warn: () => undefined },
    });
    queue.work(() => Promise.resolve());
    await vi.waitFor(async () => expect(await queue.isUp()).toBe(true), 10_000);
    await pause(300);
    const late = pause(5_000).then(() => 'late');
    const drained = queue.drain().then(() => 'drained');
    await pause(delay);
    await server.stop();
    expect(await Promise.race([drained, late])).toBe('drained');
    await queue.close();
  });

  it('waits for the runs that it began', async () => {
    const server = await startRedis();
    const queue = await openTaskQueue({
      url: server.url,
      prefix: `parley-test-${randomUUID()}`,
      log: { warn: () => undefined },
    });
    const seen: string[] = [];
    let end = () => undefined as void;
    const gate = new Promise<void>((resolve) => (end = resolve));
    queue.work(async () => {
      seen.push('began');
      await gate;
      seen.push('ended');
    });
    await queue.push({ taskId: 'one', run: 1, owner: 'ada' });
    await vi.waitFor(() => expect(seen).toEqual(['began']), 20_000);
    const drained = queue.drain().then(() => seen.push('drained'));
    await pause(50);
    await server.stop();
    await pause(1_000);
    expect(seen).toEqual(['began']);
    end();
    await drained;
    expect(seen).toEqual(['began', 'ended', 'drained']);
    await queue.close();
  });
});
