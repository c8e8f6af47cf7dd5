import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  openClusterFixture,
  openGuardedFixture,
  openRedisFixture,
  type RedisFixture,
} from '#state/contracts';
import { openTaskQueue, ProcessTaskQueue } from './open-task-queue.js';
import { TaskHandedOver } from './task-queue.js';
import { taskQueueContract } from './testing/task-queue.contract.js';

taskQueueContract('ProcessTaskQueue', () => Promise.resolve([new ProcessTaskQueue()]));

describe.each([
  ['one server', openRedisFixture],
  ['a server with TLS and a user of its own', openGuardedFixture],
  ['a cluster', openClusterFixture],
])('on %s', (_, openFixture) => {
  let redis: RedisFixture;
  beforeAll(async () => {
    redis = await openFixture();
  }, 60_000);
  afterAll(() => redis.close());

  taskQueueContract('BullTaskQueue', () => {
    const options = {
      ...redis.settings,
      prefix: `parley-test-${randomUUID()}`,
      log: { warn: () => undefined },
    };
    return Promise.all([openTaskQueue(options), openTaskQueue(options)]);
  });
});

describe('with the clock of a machine that is set back', () => {
  let redis: RedisFixture;
  beforeAll(async () => {
    redis = await openRedisFixture();
  }, 60_000);
  afterAll(() => redis.close());
  const open = () =>
    openTaskQueue({
      ...redis.settings,
      prefix: `parley-test-${randomUUID()}`,
      log: { warn: () => undefined },
      lockDuration: 400,
    });

  it('a run keeps its lock: no worker takes it for stalled', async () => {
    const queue = await open();
    const seen: string[] = [];
    let end = () => undefined as void;
    const gate = new Promise<void>((resolve) => (end = resolve));
    queue.work(({ taskId }) => {
      seen.push(taskId);
      return gate;
    });
    await queue.push({ taskId: 'long', run: 1, owner: 'ada' });
    await vi.waitFor(() => expect(seen).toEqual(['long']), 20_000);
    const { now } = Date;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() - 300_000);
    try {
      await pause(1_500);
      expect(seen).toEqual(['long']);
    } finally {
      clock.mockRestore();
      end();
      await queue.close();
    }
  });

  it('a run that a worker ahead of the others hands over begins again at once', async () => {
    const queue = await open();
    const seen: string[] = [];
    const { now } = Date;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 300_000);
    queue.work(({ taskId }) => {
      seen.push(taskId);
      setTimeout(() => clock.mockRestore(), 60);
      return seen.length === 1 ? Promise.reject(new TaskHandedOver()) : Promise.resolve();
    });
    await queue.push({ taskId: 'handed', run: 1, owner: 'ada' });
    await vi.waitFor(() => expect(seen).toEqual(['handed', 'handed']), 5_000);
    await queue.close();
  });
});
