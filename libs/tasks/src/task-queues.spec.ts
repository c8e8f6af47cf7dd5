import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe } from 'vitest';
import {
  openClusterFixture,
  openGuardedFixture,
  openRedisFixture,
  type RedisFixture,
} from '#state/contracts';
import { openTaskQueue, ProcessTaskQueue } from './open-task-queue.js';
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
