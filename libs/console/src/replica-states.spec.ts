import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type BusMessage, processState, SharedStateUnavailable } from '#state';
import { ReplicaStates } from './replica-states.js';
import type { ServiceReport } from './replica-status.js';

const { bus } = processState();
const lossy = {
  loses: false,
  messages: (topic: string) => bus.messages(topic),
  publish: (topic: string, message: BusMessage) =>
    lossy.loses ? Promise.reject(new SharedStateUnavailable()) : bus.publish(topic, message),
};

/** A replica that needs so many milliseconds to say how it is. */
function startReplica(replica: string, takes: { ms: number }): ReplicaStates {
  const dependencies = { redis: 'up' };
  const report = { replica, version: '1', node: 'v', started_at: '', dependencies, sinks: {}, streams: {} };
  const read = async () => {
    await sleep(takes.ms);
    return { ...report, policy: { version: 'p' } } as unknown as ServiceReport;
  };
  const settings = { quiet: 20, timeout: 300, kept: 0 };
  return new ReplicaStates({ read }, lossy, { replica, name: replica, reach: 'replicas', settings });
}

it('a replica is called silent that was asked and gave no answer, waited for or not, and no other', async () => {
  const [here, there] = [{ ms: 150 }, { ms: 80 }];
  const [one, two] = [startReplica('one', here), startReplica('two', there)];
  const listSilent = async () =>
    (await one.read()).replicas.map((each) => `${each.replica}${each.answered ? '' : ' is silent'}`);
  // Not known yet, so not waited for: it answers while the other one reads how it is itself.
  expect(await listSilent()).toEqual(['one', 'two']);
  there.ms = 1_000;
  expect(await listSilent()).toEqual(['one', 'two is silent']);
  lossy.loses = true;
  expect(await listSilent()).toEqual(['one', 'two']);
  lossy.loses = false;
  two.onModuleDestroy();
  await expect.poll(listSilent).toEqual(['one']);
  one.onModuleDestroy();
});
