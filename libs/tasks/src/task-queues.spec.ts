import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { openRedisFixture, type RedisFixture } from '#state/contracts';
import { BullTaskQueue } from './bull-task-queue.js';
import { ProcessTaskQueue } from './open-task-queue.js';
import { taskQueueContract } from './testing/task-queue.contract.js';

let redis: RedisFixture;
beforeAll(async () => {
  redis = await openRedisFixture();
}, 60_000);
afterAll(() => redis.close());

taskQueueContract('ProcessTaskQueue', () => Promise.resolve([new ProcessTaskQueue()]));
taskQueueContract('BullTaskQueue', () => {
  const options = { url: redis.url, prefix: `t-${randomUUID()}`, log: { warn: () => undefined } };
  return Promise.resolve([new BullTaskQueue(options), new BullTaskQueue(options)]);
});
