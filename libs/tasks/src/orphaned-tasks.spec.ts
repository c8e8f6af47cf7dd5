import { randomBytes } from 'node:crypto';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { NEVER } from 'rxjs';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import {
  Agent,
  type AgentDefinition,
  compileAgentDefinition,
  type McpRequest,
  type Owner,
  refusals,
} from '#core';
import { type AuditEvent, type AuditRecord, AuditSink, OperationLog } from '#audit';
import { LargeReads, processState } from '#state';
import { BackgroundCalls, CallJournal, ToolCallbacks } from '#dispatcher';
import { compilePolicy } from '#policy';
import { type RegisteredTool, type ToolOutcome, ToolRunner } from '#tools';
import { ProcessTaskQueue } from './open-task-queue.js';
import { StoredTaskService } from './stored-task-service.js';
import { AgentReferences, TaskRecords } from './task-records.js';
import { TaskWorker } from './task-worker.js';

const SETTINGS = { lifetime: 60_000, heartbeat: 60_000, maxPerPrincipal: 10 };
const definition = compileAgentDefinition('analyst');
const agent = new Agent({ definition, principal: 'ada', tenantId: 'acme' });
const OWNER: Owner = { principal: 'ada', tenant: 'acme', agent: 'analyst' };

class Recorded extends AuditSink {
  readonly records: AuditRecord[] = [];
  readonly events: AuditEvent[] = [];
  record(record: AuditRecord): undefined {
    this.records.push(record);
  }
  override recordEvent(event: AuditEvent): void {
    this.events.push(event);
  }
}

/** No tool may run for an agent that no longer exists. */
class NothingRuns extends ToolRunner {
  ran = 0;
  work: ((request: McpRequest) => Promise<ToolOutcome>) | null = null;
  list() {
    return [];
  }
  find() {
    return undefined;
  }
  run(_tool: string, _args: unknown, request: McpRequest): Promise<ToolOutcome> {
    this.ran += 1;
    return this.work?.(request) ?? Promise.reject(new Error('it ran'));
  }
}

let configured: Map<string, AgentDefinition>;
let audit: Recorded;
let runner: NothingRuns;
let tasks: StoredTaskService;
let queue: ProcessTaskQueue;
let worker: TaskWorker;
let records: TaskRecords;
let tool: RegisteredTool | undefined;
/** The digest of the rights that the agent has now. */
let rights = '';
/** Milliseconds by which the clock of the replicas was set. */
let shift = 0;
beforeEach(() => {
  shift = 0;
  rights = '';
  configured = new Map([['analyst', definition]]);
  audit = new Recorded();
  runner = new NothingRuns();
  queue = new ProcessTaskQueue();
  const state = processState();
  records = new TaskRecords({ tasks: state.tasks, clock: () => state.clock() + shift }, SETTINGS);
  const key = randomBytes(32);
  const agents = new AgentReferences(
    {
      findDefinition: (name) => configured.get(name),
      knows: (known) => known === definition,
      digestRights: () => rights,
    },
    { secrets: () => Promise.resolve([key]) },
  );
  const journal = new CallJournal(
    { of: () => compilePolicy({}).policy },
    audit,
    null,
    new OperationLog(10),
    new ToolCallbacks(),
    new EventEmitter2(),
  );
  const calls = new BackgroundCalls(runner, { warn: () => undefined }, journal);
  tasks = new StoredTaskService(records, queue, agents, calls, SETTINGS, new LargeReads(), state);
  const current = { changes: NEVER, isCurrent: () => true };
  tool = undefined;
  worker = new TaskWorker(records, agents, calls, { get: () => tool }, SETTINGS, state, current);
});

const begin = () =>
  tasks.start({ agent, tool: 'slow', args: { secret: 'value' }, version: '2026-07-28', capabilities: {} }, 0);

describe('a run that only reads, and calls tools that write', () => {
  const written: string[] = [];
  /** Calls two of them at once. @returns how each ended */
  const writeTwice = (request: McpRequest) =>
    Promise.allSettled(
      ['one', 'two'].map(async (name) => {
        await request.beforeChange?.();
        written.push(name);
      }),
    );
  beforeEach(() => {
    written.length = 0;
    tool = { definition: { name: 'slow', permission: 'readonly' } } as RegisteredTool;
  });

  it('writes nothing where another worker writes, and leaves the end of the task to that one', async () => {
    const { taskId } = await begin();
    let ends: readonly PromiseSettledResult<void>[] = [];
    runner.work = async (request) => {
      await records.change(taskId, (record) => ({ ...record, changedBy: 'another' }));
      ends = await writeTwice(request);
      return { ok: false, refusal: refusals.cancelled() };
    };
    queue.work((job) => worker.handle(job));
    await queue.drain();
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(written).toEqual([]);
    expect(await tasks.find(taskId, agent)).toMatchObject({ status: 'working' });
  });

  it('leaves the end to the worker that writes also where it wrote nothing itself', async () => {
    const { taskId } = await begin();
    runner.work = async () => {
      await records.change(taskId, (record) => ({ ...record, changedBy: 'another' }));
      return { ok: true, data: {}, text: '{}', structured: false };
    };
    queue.work((job) => worker.handle(job));
    await queue.drain();
    expect(await tasks.find(taskId, agent)).toMatchObject({ status: 'working' });
  });

  it('goes on with its own note where the answer to that was lost', async () => {
    const { taskId } = await begin();
    const change = records.change.bind(records);
    runner.work = async (request) => {
      vi.spyOn(records, 'change').mockImplementationOnce(async (...asked) => {
        await change(...asked);
        throw new Error('Redis is away');
      });
      await writeTwice(request);
      expect(written).toEqual([]);
      await writeTwice(request);
      return { ok: true, data: {}, text: '{}', structured: false };
    };
    queue.work((job) => worker.handle(job));
    await queue.drain();
    expect(written).toEqual(['one', 'two']);
    expect(await tasks.find(taskId, agent)).toMatchObject({ status: 'completed' });
  });

  it('writes only once it is noted, and notes it again where that failed', async () => {
    const { taskId } = await begin();
    const change = vi.spyOn(records, 'change');
    runner.work = async (request) => {
      change.mockRejectedValueOnce(new Error('Redis is away'));
      expect((await writeTwice(request)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      expect(written).toEqual([]);
      await writeTwice(request);
      expect(await records.find(taskId)).toMatchObject({ changedBy: expect.any(String) as string });
      return { ok: true, data: {}, text: '{}', structured: false };
    };
    queue.work((job) => worker.handle(job));
    await queue.drain();
    expect(written).toEqual(['one', 'two']);
    expect(await tasks.find(taskId, agent)).toMatchObject({ status: 'completed' });
  });
});

describe('a task whose agent is no longer configured', () => {
  it('fails without running, and leaves one record that names its owner and no value', async () => {
    const { taskId } = await begin();
    configured.clear();
    queue.work((job) => worker.handle(job));
    await queue.drain();
    expect(await tasks.find(taskId, agent)).toMatchObject({
      status: 'failed',
      error: { message: 'The agent of this task no longer exists' },
    });
    expect(runner.ran).toBe(0);
    expect(audit.records).toEqual([]);
    expect(audit.events).toMatchObject([
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
    expect(JSON.stringify(audit.events)).not.toContain('value');
  });

  it('leaves one record as well when it is cancelled before it ran', async () => {
    const { taskId } = await begin();
    configured.clear();
    await tasks.cancel(taskId, OWNER);
    await tasks.cancel(taskId, OWNER);
    queue.work((job) => worker.handle(job));
    await queue.drain();
    expect(audit.events).toMatchObject([{ type: 'task_end', task_id: taskId }]);
    expect(runner.ran).toBe(0);
  });

  it('is not started by a worker that is closing', async () => {
    const { taskId } = await begin();
    worker.close();
    await expect(worker.handle({ taskId, run: 1, owner: 'ada' })).rejects.toMatchObject({
      name: 'TaskHandedOver',
    });
    expect(await tasks.find(taskId, agent)).toMatchObject({ status: 'working' });
  });
});

describe('a task whose job was lost', () => {
  it.each([
    ['after it was silent for five heartbeats', 5 * SETTINGS.heartbeat + 1_000],
    ['when the clock of Redis was set back since', -6 * SETTINGS.heartbeat],
  ])('is queued again at the next poll, %s', async (_, by) => {
    const { taskId } = await begin();
    const pushed = vi.spyOn(queue, 'push');
    await tasks.find(taskId, agent);
    expect(pushed).not.toHaveBeenCalled();
    shift = by;
    await tasks.find(taskId, agent);
    expect(pushed).toHaveBeenCalledExactlyOnceWith({ taskId, run: 1, owner: 'ada' });
  });
});

describe('a task that asks with other rights than its caller has', () => {
  const ask = (taskId: string) =>
    records.change(taskId, (record) => ({
      ...record,
      status: 'input_required',
      rights: 'of another version',
      open: { which: { method: 'elicitation/create', params: { message: 'a value' } } },
    }));

  it('is run again, and by no number of polls over and over while replicas serve different policies', async () => {
    const push = vi.spyOn(queue, 'push');
    const { taskId } = await begin();
    for (let round = 1; round <= 3; round += 1) {
      await ask(taskId);
      shift += 10_000;
      for (let poll = 0; poll < 20; poll += 1) {
        expect(await tasks.find(taskId, agent)).toMatchObject({ status: 'working' });
        await ask(taskId);
      }
      expect(push).toHaveBeenCalledTimes(1 + round);
    }
    rights = 'of another version';
    expect(await tasks.find(taskId, agent)).toMatchObject({ status: 'input_required' });
  });

  it.each([['of another version'], [undefined]])('shows no result of a run with rights %s', async (of) => {
    const { taskId } = await begin();
    await records.change(taskId, ({ rights: _before, ...record }) => ({
      ...record,
      status: 'completed',
      result: { content: [] },
      ...(of !== undefined && { rights: of }),
    }));
    const shown = await tasks.find(taskId, agent);
    expect(shown).toMatchObject({ status: 'failed' });
    expect(shown).not.toHaveProperty('result');
  });
});
