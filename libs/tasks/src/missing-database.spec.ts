import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, it, vi } from 'vitest';
import { SharedStateUnavailable } from '#state';
import { startRedis } from '#state/contracts';
import { openTaskQueue } from './open-task-queue.js';

describe('in a database that the server lacks', () => {
  it('nothing is queued and nothing is taken from another one', async () => {
    const server = await startRedis(['--databases', '1']);
    const prefix = `parley-test-${randomUUID()}`;
    const [queue, neighbour] = await Promise.all(
      ['/1', ''].map((path) =>
        openTaskQueue({ url: `${server.url}${path}`, prefix, log: { warn: () => undefined } }),
      ),
    );
    const taken: string[] = [];
    queue?.work(({ taskId }) => Promise.resolve(void taken.push(taskId)));
    await vi.waitFor(() => neighbour?.push({ taskId: 'theirs', run: 1, owner: 'ada' }), 10_000);
    await expect(queue?.push({ taskId: 'ours', run: 1, owner: 'ada' })).rejects.toThrow(
      SharedStateUnavailable,
    );
    await pause(1_500);
    expect(taken).toEqual([]);
    expect(await queue?.isUp()).toBe(false);
    const client = new Redis(server.url);
    expect((await client.keys('*')).filter((key) => key.includes('ours'))).toEqual([]);
    client.disconnect();
    await Promise.all([queue?.close(), neighbour?.close()]);
    await server.stop();
  });
});
