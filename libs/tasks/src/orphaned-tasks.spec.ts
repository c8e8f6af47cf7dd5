import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Owner } from '#core';
import type { TaskWorker } from './task-worker.js';
import { agent, SETTINGS, TasksUnderTest } from './testing/tasks-under-test.js';

const OWNER: Owner = { principal: 'ada', tenant: 'acme', agent: 'analyst' };

let made: TasksUnderTest;
let worker: TaskWorker;
beforeEach(() => {
  made = new TasksUnderTest();
  made.runner.add('slow', () => 'it ran');
  worker = made.openWorker();
});

describe('a task whose agent is no longer configured', () => {
  it('fails without running, and leaves one record that names its owner and no value', async () => {
    const { taskId } = await made.begin();
    made.configured.clear();
    made.queue.work((job) => worker.handle(job));
    await made.queue.drain();
    expect(await made.tasks.find(taskId, agent)).toMatchObject({
      status: 'failed',
      error: { message: 'The agent of this task no longer exists' },
    });
    expect(made.runner.begun.size).toBe(0);
    expect(made.audit.records).toEqual([]);
    expect(made.audit.events).toMatchObject([
      {
        type: 'task_end',
        success: false,
        task_id: taskId,
        tool: 'slow',
        principal: 'ada',
        agent_name: 'analyst',
        tenant_id: 'acme',
        gate: 'identity',
      },
    ]);
    expect(JSON.stringify(made.audit.events)).not.toContain('value');
  });

  it('leaves one record as well when it is cancelled before it ran', async () => {
    const { taskId } = await made.begin();
    made.configured.clear();
    await made.tasks.cancel(taskId, OWNER);
    await made.tasks.cancel(taskId, OWNER);
    made.queue.work((job) => worker.handle(job));
    await made.queue.drain();
    expect(made.audit.events).toMatchObject([{ type: 'task_end', task_id: taskId }]);
    expect(made.runner.begun.size).toBe(0);
  });

  it('is not started by a worker that is closing', async () => {
    const { taskId } = await made.begin();
    worker.close();
    await expect(worker.handle({ taskId, run: 1, owner: 'ada' })).rejects.toMatchObject({
      name: 'TaskHandedOver',
    });
    expect(await made.tasks.find(taskId, agent)).toMatchObject({ status: 'working' });
  });
});

describe('a task whose job was lost', () => {
  it.each([
    ['after it was silent for five heartbeats', 5 * SETTINGS.heartbeat + 1_000],
    ['when the clock of Redis was set back since', -6 * SETTINGS.heartbeat],
  ])('is queued again at the next poll, %s', async (_, by) => {
    const { taskId } = await made.begin();
    const pushed = vi.spyOn(made.queue, 'push');
    await made.tasks.find(taskId, agent);
    expect(pushed).not.toHaveBeenCalled();
    made.shift = by;
    await made.tasks.find(taskId, agent);
    expect(pushed).toHaveBeenCalledExactlyOnceWith({ taskId, run: 1, owner: 'ada' });
  });
});

describe('a task that asks with other rights than its caller has', () => {
  const ask = (taskId: string) =>
    made.records.change(taskId, (record) => ({
      ...record,
      status: 'input_required',
      rights: 'of another version',
      open: { which: { method: 'elicitation/create', params: { message: 'a value' } } },
    }));

  it('is run again, and by no number of polls over and over while replicas serve different policies', async () => {
    const push = vi.spyOn(made.queue, 'push');
    const { taskId } = await made.begin();
    for (let round = 1; round <= 3; round += 1) {
      await ask(taskId);
      made.shift += 10_000;
      for (let poll = 0; poll < 20; poll += 1) {
        expect(await made.tasks.find(taskId, agent)).toMatchObject({ status: 'working' });
        await ask(taskId);
      }
      expect(push).toHaveBeenCalledTimes(1 + round);
    }
    made.rights = 'of another version';
    expect(await made.tasks.find(taskId, agent)).toMatchObject({ status: 'input_required' });
  });

  it.each([['of another version'], [undefined]])('shows no result of a run with rights %s', async (of) => {
    const { taskId } = await made.begin();
    await made.records.change(taskId, ({ rights: _before, ...record }) => ({
      ...record,
      status: 'completed',
      result: { content: [] },
      ...(of !== undefined && { rights: of }),
    }));
    const shown = await made.tasks.find(taskId, agent);
    expect(shown).toMatchObject({ status: 'failed' });
    expect(shown).not.toHaveProperty('result');
  });
});
