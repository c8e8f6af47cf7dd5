import { beforeEach, describe, expect, it, vi } from 'vitest';
import { SharedStateUnavailable } from '#state';
import type { ToolCall, ToolOutcome } from '#tools';
import { agent, SETTINGS, TasksUnderTest } from './testing/tasks-under-test.js';

let made: TasksUnderTest;
let written: string[];
let work: (call: ToolCall) => unknown;
beforeEach(() => {
  made = new TasksUnderTest();
  written = [];
  work = (call) => write(call);
  made.runner
    .add('slow', (_args, call) => work(call))
    .add('slow_write', (_args, call) => work(call), { permission: 'write' })
    .add('write', ({ name }) => ({ written: written.push(String(name)) }), { permission: 'write' });
});

const write = (call: ToolCall, name = 'one'): Promise<ToolOutcome> =>
  made.runner.run('write', { name }, call as never);
const writeTwice = (call: ToolCall) => Promise.all(['one', 'two'].map((name) => write(call, name)));
const toJob = (taskId: string, run = 1) => ({ taskId, run, owner: 'ada' });
const find = (taskId: string) => made.tasks.find(taskId, agent);
const cancel = (taskId: string) =>
  made.tasks.cancel(taskId, { principal: 'ada', tenant: 'acme', agent: 'analyst' });
const noteOther = (taskId: string) =>
  made.records.change(taskId, (record) => ({ ...record, changedBy: 'another' }));
const listRecorded = (tool = 'slow') => made.audit.records.filter((record) => record.tool === tool);
const countBegun = (tool = 'slow') => made.runner.begun.get(tool) ?? 0;

/** What is passed only once it was opened. */
function makeGate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open: () => open(), opened };
}

/** The next change is stored, and fails all the same. */
function loseAnswer() {
  const change = made.records.change.bind(made.records);
  vi.spyOn(made.records, 'change').mockImplementationOnce(async (...asked) => {
    await change(...asked);
    throw new SharedStateUnavailable();
  });
}

describe('a run that is assigned again to the worker that runs it, because the lock of its job was lost', () => {
  it.each(['slow', 'slow_write'])('is run once, and ends both jobs: %s', async (tool) => {
    const { open, opened } = makeGate();
    work = async (call) => {
      await opened;
      return write(call);
    };
    const { taskId } = await made.begin(tool);
    const worker = made.openWorker();
    const first = worker.handle(toJob(taskId));
    await vi.waitFor(() => expect(countBegun(tool)).toBe(1));
    const second = worker.handle(toJob(taskId));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await find(taskId)).toMatchObject({ status: 'working' });
    open();
    await Promise.all([first, second]);
    expect(countBegun(tool)).toBe(1);
    expect(written).toEqual(['one']);
    expect(await find(taskId)).toMatchObject({ status: 'completed' });
    expect(listRecorded(tool)).toMatchObject([{ success: true }]);
    expect(worker.active).toBe(0);
  });

  it('is ended by a cancellation as before', async () => {
    const { open, opened } = makeGate();
    work = async (call) => {
      await opened;
      return write(call);
    };
    const { taskId } = await made.begin();
    const worker = made.openWorker();
    const jobs = [worker.handle(toJob(taskId)), worker.handle(toJob(taskId))];
    await vi.waitFor(() => expect(countBegun()).toBe(1));
    await cancel(taskId);
    open();
    await Promise.all(jobs);
    expect(written).toEqual([]);
    expect(listRecorded()).toMatchObject([{ success: false, error_code: 'cancelled' }]);
  });
});

describe('a run that two workers have, because one of them was taken for dead', () => {
  it('is written by one of them, which ends it and makes its one record', async () => {
    const { open, opened } = makeGate();
    work = async (call) => {
      await opened;
      return writeTwice(call);
    };
    const { taskId } = await made.begin();
    const runs = [made.openWorker(), made.openWorker()].map((worker) => worker.handle(toJob(taskId)));
    await vi.waitFor(() => expect(countBegun()).toBe(2));
    open();
    await Promise.all(runs);
    expect(written).toEqual(['one', 'two']);
    expect(await find(taskId)).toMatchObject({ status: 'completed' });
    expect(listRecorded()).toMatchObject([{ success: true }]);
  });

  it('has one record and one end where neither writes', async () => {
    const { open, opened } = makeGate();
    work = () => opened.then(() => 'read');
    const { taskId } = await made.begin();
    const runs = [made.openWorker(), made.openWorker()].map((worker) => worker.handle(toJob(taskId)));
    await vi.waitFor(() => expect(countBegun()).toBe(2));
    open();
    await Promise.all(runs);
    expect(await find(taskId)).toMatchObject({ status: 'completed' });
    expect(listRecorded()).toMatchObject([{ success: true }]);
  });

  it('has one record where it was cancelled', async () => {
    work = () => new Promise(() => undefined);
    const { taskId } = await made.begin();
    const runs = [made.openWorker(), made.openWorker()].map((worker) => worker.handle(toJob(taskId)));
    await vi.waitFor(() => expect(countBegun()).toBe(2));
    await cancel(taskId);
    await Promise.all(runs);
    expect(listRecorded()).toMatchObject([{ success: false, error_code: 'cancelled' }]);
  });

  it('is not begun by the second one where the first one notes a change meanwhile', async () => {
    const { taskId } = await made.begin();
    await made.records.change(taskId, (record) => ({ ...record, begun: true }));
    const store = made.state.tasks;
    const findStored = store.find.bind(store);
    vi.spyOn(store, 'find').mockImplementationOnce(async (id) => {
      const seen = await findStored(id);
      await noteOther(taskId);
      return seen;
    });
    await made.openWorker().handle(toJob(taskId));
    expect(written).toEqual([]);
  });

  it('is begun by the second one where the first one died when it had only read, just before the end', async () => {
    const { taskId } = await made.begin();
    await made.records.change(taskId, (record) => ({ ...record, begun: true, endedBy: 'another' }));
    await made.openWorker().handle(toJob(taskId));
    expect(written).toEqual(['one']);
    expect(await find(taskId)).toMatchObject({ status: 'completed' });
  });

  it('leaves no record by the one that wrote nothing, however that one ends', async () => {
    for (const end of [write, () => 'read', () => Promise.reject(new Error('it failed'))]) {
      const { taskId } = await made.begin();
      work = async (call) => {
        await noteOther(taskId);
        return end(call);
      };
      await made.openWorker().handle(toJob(taskId));
      expect(await find(taskId)).toMatchObject({ status: 'working' });
    }
    expect(written).toEqual([]);
    expect(listRecorded()).toEqual([]);
  });

  it('goes on with the one that writes where the agent of the other one is gone', async () => {
    const { taskId } = await made.begin();
    work = async (call) => {
      await noteOther(taskId);
      made.configured.clear();
      made.reload();
      await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
    };
    await made.openWorker().handle(toJob(taskId));
    expect(await find(taskId)).toMatchObject({ status: 'working' });
    expect(made.audit.events).toEqual([]);
  });

  it('ends the one that wrote nothing at its next heartbeat', async () => {
    made = new TasksUnderTest({ ...SETTINGS, heartbeat: 20 });
    let reason: unknown;
    made.runner.add('slow', async (_args, { signal }) => {
      await noteOther((await made.records.listOpen('analyst'))[0]?.[0] ?? '');
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      reason = signal.reason;
    });
    const { taskId } = await made.begin();
    await made.openWorker().handle(toJob(taskId));
    expect(reason).toBe('cancelled');
    expect(await find(taskId)).toMatchObject({ status: 'working' });
    expect(listRecorded()).toEqual([]);
  });
});

describe('a change that cannot be noted because Redis is away', () => {
  const away = () => vi.spyOn(made.records, 'change').mockRejectedValueOnce(new SharedStateUnavailable());

  it('is refused as not made, to be tried again, and is made when it is', async () => {
    const outcomes: ToolOutcome[] = [];
    work = async (call) => {
      away();
      outcomes.push(await write(call), await write(call, 'two'));
    };
    const { taskId } = await made.begin();
    await made.openWorker().handle(toJob(taskId));
    expect(outcomes).toMatchObject([
      { ok: false, refusal: { code: 'rate_limited', retryAfter: expect.any(Number) as number } },
      { ok: true },
    ]);
    expect(written).toEqual(['two']);
    expect(await find(taskId)).toMatchObject({ status: 'completed' });
  });

  it('is refused to every call that waits for the note, and noted again for the next ones', async () => {
    const { taskId } = await made.begin();
    work = async (call) => {
      away();
      expect((await writeTwice(call)).map(({ ok }) => ok)).toEqual([false, false]);
      expect(written).toEqual([]);
      expect(await made.records.find(taskId)).not.toHaveProperty('changedBy');
      expect((await writeTwice(call)).map(({ ok }) => ok)).toEqual([true, true]);
      expect(await made.records.find(taskId)).toMatchObject({ changedBy: expect.any(String) as string });
    };
    await made.openWorker().handle(toJob(taskId));
    expect(written).toEqual(['one', 'two']);
    expect(await find(taskId)).toMatchObject({ status: 'completed' });
  });

  it('is made under the note that was stored though the answer was lost, also after a reload', async () => {
    const { taskId } = await made.begin();
    work = async (call) => {
      loseAnswer();
      expect((await writeTwice(call)).map(({ ok }) => ok)).toEqual([false, false]);
      expect(written).toEqual([]);
      work = writeTwice;
      made.reload();
      await new Promise(() => undefined);
    };
    await made.openWorker().handle(toJob(taskId));
    expect(written).toEqual(['one', 'two']);
    expect(await find(taskId)).toMatchObject({ status: 'completed' });
    expect(listRecorded()).toMatchObject([{ success: true }]);
  });

  it('is refused where the task itself makes it, which has one record', async () => {
    const { taskId } = await made.begin('slow_write');
    const begin = made.records.change.bind(made.records);
    vi.spyOn(made.records, 'change')
      .mockImplementationOnce(begin)
      .mockRejectedValueOnce(new SharedStateUnavailable());
    await made.openWorker().handle(toJob(taskId));
    expect(written).toEqual([]);
    expect(await find(taskId)).toMatchObject({ status: 'completed', result: { isError: true } });
    expect(listRecorded('slow_write')).toMatchObject([{ success: false, error_code: 'rate_limited' }]);
  });

  it('leaves a run that changed nothing to a reload, before and during the note', async () => {
    const ran: string[] = [];
    work = async (call) => {
      ran.push('run');
      if (ran.length === 3) return write(call);
      const change = away();
      if (ran.length === 2) {
        change.mockReset().mockImplementationOnce(() => {
          made.isCurrent = false;
          made.reloads.next();
          return Promise.reject(new SharedStateUnavailable());
        });
      }
      await write(call);
      change.mockRestore();
      if (ran.length === 1) made.reload();
      await new Promise((resolve) => setTimeout(resolve, 20));
      made.isCurrent = true;
      return 'with the rights of before';
    };
    const { taskId } = await made.begin();
    await made.openWorker().handle(toJob(taskId));
    expect(ran).toHaveLength(3);
    expect(written).toEqual(['one']);
    expect(listRecorded()).toHaveLength(1);
  });
});

describe('a worker that closes', () => {
  it.each(['slow', 'slow_write'])(
    'leaves a run that only waits for its record as it ended: %s',
    async (tool) => {
      const { open, opened } = makeGate();
      made.audit.kept = opened;
      work = () => 'it ran';
      const { taskId } = await made.begin(tool);
      const worker = made.openWorker();
      const run = worker.handle(toJob(taskId));
      await vi.waitFor(() => expect(listRecorded(tool)).toMatchObject([{ success: true }]));
      worker.close();
      open();
      await run;
      expect(await find(taskId)).toMatchObject({ status: 'completed' });
      expect(listRecorded(tool)).toHaveLength(1);
    },
  );

  it('hands over a run whose note was stored though the answer was lost', async () => {
    const { taskId } = await made.begin();
    const worker = made.openWorker();
    work = async (call) => {
      loseAnswer();
      expect(await write(call)).toMatchObject({ ok: false });
      worker.close();
      await new Promise(() => undefined);
    };
    await expect(worker.handle(toJob(taskId))).rejects.toMatchObject({ name: 'TaskHandedOver' });
    work = write;
    await made.openWorker().handle(toJob(taskId));
    expect(written).toEqual(['one']);
    expect(await find(taskId)).toMatchObject({ status: 'completed' });
    expect(listRecorded()).toMatchObject([{ success: true }]);
  });

  it('hands over what has changed nothing, which another one then runs', async () => {
    work = () => new Promise(() => undefined);
    const { taskId } = await made.begin('slow_write');
    made.runner.add('slow', (_args, call) => work(call));
    const read = await made.begin();
    const worker = made.openWorker();
    const runs = [taskId, read.taskId].map((id) => worker.handle(toJob(id)));
    await vi.waitFor(() => expect([countBegun(), countBegun('slow_write')]).toEqual([1, 1]));
    worker.close();
    const ends = await Promise.allSettled(runs);
    expect(ends).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { name: 'TaskHandedOver' } },
    ]);
    expect(await find(taskId)).toMatchObject({ status: 'failed' });
    expect(listRecorded('slow_write')).toMatchObject([{ success: false }]);
    expect(listRecorded()).toEqual([]);
    work = write;
    await made.openWorker().handle(toJob(read.taskId));
    expect(await find(read.taskId)).toMatchObject({ status: 'completed' });
    expect(listRecorded()).toMatchObject([{ success: true }]);
  });

  it('hands over a run that it was about to begin', async () => {
    const { taskId } = await made.begin();
    const worker = made.openWorker();
    const run = worker.handle(toJob(taskId)).catch((error: unknown) => error);
    worker.close();
    expect(await run).toMatchObject({ name: 'TaskHandedOver' });
    expect(countBegun()).toBe(0);
    expect(await made.records.find(taskId)).toMatchObject({ status: 'working', begun: false });
  });

  it.each(['before', 'after'])('leaves one record of a run that is cancelled %s that', async (when) => {
    work = () => new Promise(() => undefined);
    const { taskId } = await made.begin();
    const worker = made.openWorker();
    const run = worker.handle(toJob(taskId)).catch((error: unknown) => error);
    await vi.waitFor(() => expect(countBegun()).toBe(1));
    worker.close();
    if (when === 'before') await cancel(taskId);
    await run;
    if (when === 'after') await cancel(taskId);
    expect(listRecorded()).toMatchObject([{ success: false, error_code: 'cancelled' }]);
  });
});

describe('the end of a run that cannot be stored because Redis is away', () => {
  it('counts nowhere where another worker has repeated the read meanwhile, which is recorded twice', async () => {
    const reads = ['of the one that was cut off', 'of the other'];
    work = () => reads.shift();
    const { taskId } = await made.begin();
    const own = made.openRecords();
    const change = own.change.bind(own);
    const reached = vi.spyOn(own, 'change');
    // It begins the run, claims its end, and is cut off before it stores that.
    reached.mockImplementation((...asked) =>
      reached.mock.calls.length === 3 ? Promise.reject(new SharedStateUnavailable()) : change(...asked),
    );
    const cutOff = made.openWorker(own).handle(toJob(taskId));
    await vi.waitFor(() => expect(reached).toHaveBeenCalledTimes(3));
    await made.openWorker().handle(toJob(taskId));
    await cutOff;
    expect(JSON.stringify(await find(taskId))).toContain('of the other');
    expect(listRecorded()).toMatchObject([{ success: true }, { success: true }]);
  });

  it('is stored once Redis is back, and is not run again', async () => {
    const { taskId } = await made.begin();
    work = async (call) => {
      await write(call);
      const unavailable = new SharedStateUnavailable();
      vi.spyOn(made.records, 'change').mockRejectedValueOnce(unavailable).mockRejectedValueOnce(unavailable);
      return 'done';
    };
    await made.openWorker().handle(toJob(taskId));
    expect(countBegun()).toBe(1);
    expect(await find(taskId)).toMatchObject({ status: 'completed' });
    expect(listRecorded()).toMatchObject([{ success: true }]);
  });
});
