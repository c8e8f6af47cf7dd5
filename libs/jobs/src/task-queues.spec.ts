import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { openRedisRoom, type RedisRoom } from '#cluster-contracts';
import { BullTaskQueue } from './bull-task-queue.js';
import { ProcessTaskQueue } from './open-task-queue.js';
import { taskQueueContract } from './testing/task-queue.contract.js';

let room: RedisRoom;
beforeAll(async () => {
  room = await openRedisRoom();
}, 60_000);
afterAll(() => room.close());

taskQueueContract('ProcessTaskQueue', () => Promise.resolve([new ProcessTaskQueue()]));
taskQueueContract('BullTaskQueue', () => {
  const options = { url: room.url, prefix: `t-${randomUUID()}`, log: { warn: () => undefined } };
  return Promise.resolve([new BullTaskQueue(options), new BullTaskQueue(options)]);
});
