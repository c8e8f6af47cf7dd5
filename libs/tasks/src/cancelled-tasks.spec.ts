import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ToolCall } from '#tools';
import { agent, TasksUnderTest } from './testing/tasks-under-test.js';

const OWNER = { principal: 'ada', tenant: 'acme', agent: 'analyst' };
const QUESTION = {
  kind: 'form',
  message: 'Go on?',
  schema: { type: 'object', properties: { yes: { type: 'boolean' } }, required: ['yes'] },
} as const;

let made: TasksUnderTest;
let work: (call: ToolCall) => unknown;
beforeEach(() => {
  made = new TasksUnderTest();
  work = (call) => call.ask('go on', QUESTION);
  made.runner.add('slow', (_args, call) => work(call));
});

const startRun = async () => {
  const { taskId } = await made.begin();
  const worker = made.openWorker();
  return { taskId, worker, run: worker.handle({ taskId, run: 1, owner: 'ada' }) };
};
/** @returns whether the one record of it is that of a call that did something, which no sink leaves out */
const cancel = async (taskId: string) => {
  await made.tasks.cancel(taskId, OWNER);
  expect(made.audit.records).toMatchObject([{ tool: 'slow', success: false, error_code: 'cancelled' }]);
  return made.audit.unbegun.length === 0;
};

describe('the record of a task that is cancelled', () => {
  it('is that of a call that ran where it had asked', async () => {
    const { taskId, run } = await startRun();
    await run;
    expect(await made.tasks.find(taskId, agent)).toMatchObject({ status: 'input_required' });
    expect(await cancel(taskId)).toBe(true);
  });

  it('is that of a call that ran where it had asked, was answered and waits for a worker', async () => {
    const { taskId, run } = await startRun();
    await run;
    const { inputRequests = {} } = (await made.tasks.find(taskId, agent)) ?? {};
    const answers = Object.keys(inputRequests).map((key) => [
      key,
      { action: 'accept', content: { yes: true } },
    ]);
    await made.tasks.answer(taskId, OWNER, Object.fromEntries(answers));
    expect(await made.records.find(taskId)).toMatchObject({ status: 'working', run: 2 });
    expect(await cancel(taskId)).toBe(true);
  });

  it('is that of a call that ran where its worker had handed it over', async () => {
    work = () => new Promise(() => undefined);
    const { taskId, worker, run } = await startRun();
    await vi.waitFor(() => expect(made.runner.begun.get('slow')).toBe(1));
    worker.close();
    await expect(run).rejects.toMatchObject({ name: 'TaskHandedOver' });
    expect(await cancel(taskId)).toBe(true);
  });

  it('is made once by the worker to which the job of a dead one is assigned', async () => {
    const { taskId } = await made.begin();
    await made.records.change(taskId, (record) => ({ ...record, begun: true, ran: true }));
    await made.tasks.cancel(taskId, OWNER);
    expect(made.audit.records).toEqual([]);
    for (const worker of [made.openWorker(), made.openWorker()])
      await worker.handle({ taskId, run: 1, owner: 'ada' });
    expect(made.audit.records).toMatchObject([{ tool: 'slow', success: false, error_code: 'cancelled' }]);
    expect(made.audit.unbegun).toEqual([]);
    expect(made.runner.begun.get('slow')).toBeUndefined();
  });

  it('is that of a call that did nothing where no worker had begun it', async () => {
    const { taskId } = await made.begin();
    expect(await cancel(taskId)).toBe(false);
  });
});
