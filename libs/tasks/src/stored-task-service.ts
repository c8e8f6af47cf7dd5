import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { filter, firstValueFrom, merge, timer } from 'rxjs';
import {
  type Agent,
  isSameOwner,
  type Owner,
  type RateLimiter,
  type Refusal,
  refusals,
  Refused,
  spendLimit,
  toOwner,
  refuse,
  type JsonObject,
} from '#core';
import { LargeReads, type MessageBus, SharedState } from '#state';
import {
  BackgroundCalls,
  fittingResponses,
  RPC,
  type TaskCall,
  TaskStore,
  type TaskState,
} from '#dispatcher';
import { type TaskJob, TaskQueue } from './task-queue.js';
import {
  AgentReferences,
  CANCELLED_TOPIC,
  ENDED_TOPIC,
  hasEnded,
  type TaskRecord,
  TaskRecords,
  TaskSettings,
  taskState,
  listUnanswered,
} from './task-records.js';

/** Missed heartbeats of a run after which it is treated as lost. */
const MAX_MISSED_HEARTBEATS = 5;

/** Milliseconds before a run whose questions are not shown is followed by another one. */
const BETWEEN_RUNS = 5_000;

const RIGHTS_CHANGED = Object.freeze({
  code: RPC.internalError,
  message:
    'The policy or the rights of this agent have changed since this task ran: its result is not shown, and what it changed stays changed. Read before you call again',
});

/** Tasks as records, run by any replica with a free worker. */
@Injectable()
export class StoredTaskService extends TaskStore {
  private readonly bus: MessageBus;
  /** How many tasks a principal may create: each is stored for its lifetime. */
  private readonly begun: RateLimiter;

  constructor(
    private readonly records: TaskRecords,
    private readonly queue: TaskQueue,
    private readonly agents: AgentReferences,
    private readonly calls: BackgroundCalls,
    private readonly settings: TaskSettings,
    private readonly largeReads: LargeReads,
    @Inject(SharedState) { bus, limiters }: Pick<SharedState, 'bus' | 'limiters'>,
  ) {
    super();
    const { maxPerPrincipal: limit, lifetime } = settings;
    this.bus = bus;
    this.begun = limiters.limiter('tasks', { limit, window: lifetime / 1000 });
  }

  /** @throws Refused for the call of a sub-agent, under whose limits no worker could run, and for one task too many */
  async start(call: TaskCall, timeout: number): Promise<TaskState> {
    const { records, queue, agents, bus, begun } = this;
    const taskId = randomUUID();
    const agent = await agents.write(call.agent, taskId);
    if (agent === undefined) throw refuse.notImplemented('This agent cannot begin tasks');
    const record = newRecord(call, agent, records.now());
    const refusal = await findRefusal(begun, call.agent.principal);
    if (refusal) {
      this.calls.recordUnfinished(
        { ...record, agent: call.agent, milliseconds: records.measureAge(record) },
        refusal,
      );
      throw new Refused(refusal);
    }
    await records.create(taskId, record);
    // Subscribed before the job exists: a quick run may end before a slow listener begins.
    const settled = timeout > 0 ? waitForEnd(bus, taskId, timeout) : undefined;
    try {
      await queue.push(toJob(taskId, record));
    } catch (error) {
      await records.remove(taskId);
      throw error;
    }
    await settled;
    return this.showTo(call.agent, taskId, settled ? ((await records.find(taskId)) ?? record) : record);
  }

  async find(taskId: string, agent: Agent): Promise<TaskState | undefined> {
    const record = await this.findOwned(taskId, toOwner(agent));
    if (!record) return undefined;
    await this.revive(taskId, record);
    return this.showTo(agent, taskId, record);
  }

  /** What the last run found and asked, for an agent with the rights of that run. */
  private async showTo(agent: Agent, taskId: string, record: TaskRecord): Promise<TaskState> {
    const { status, rights } = record;
    if (rights === this.agents.digestRights(agent)) return this.state(taskId, record);
    if (status === 'completed')
      return this.state(taskId, { ...record, status: 'failed', error: RIGHTS_CHANGED });
    if (status !== 'input_required') return this.state(taskId, record);
    const asked = await this.askAgain(taskId, record);
    return this.state(taskId, asked ?? { ...record, status: 'working' });
  }

  async answer(taskId: string, owner: Owner, responses: JsonObject): Promise<boolean> {
    const record = await this.findOwned(taskId, owner);
    if (!record) return false;
    const fitting = fittingResponses(listUnanswered(record), responses);
    const changed = await this.records.change(taskId, (current) => withAnswers(current, fitting));
    if (changed?.status === 'working') await this.queue.push(toJob(taskId, changed));
    return true;
  }

  async cancel(taskId: string, owner: Owner): Promise<boolean> {
    const record = await this.findOwned(taskId, owner);
    if (!record) return false;
    let waited = false;
    const changed = await this.records.change(taskId, (current) => {
      waited = current.status === 'input_required' || !current.begun;
      return hasEnded(current) ? null : { ...current, status: 'cancelled' };
    });
    if (!changed) return true;
    await this.bus.publish(CANCELLED_TOPIC, { taskId });
    // A run in progress receives the message and records how it ended.
    if (waited) await this.recordCancelled(taskId, changed);
    return true;
  }

  /** Cancels the tasks of all callers of an agent, as far as they are listed: its gates refuse the runs of others. */
  async cancelAll(agent: string): Promise<void> {
    for (const [taskId, owner] of await this.records.listOpen(agent)) await this.cancel(taskId, owner);
  }

  private async recordCancelled(taskId: string, record: TaskRecord): Promise<void> {
    const agent = await this.agents.read(record.agent, taskId);
    if (!agent) return this.calls.recordOrphaned({ ...record, taskId });
    const { ran: begun = false } = record;
    const milliseconds = this.records.measureAge(record);
    this.calls.recordUnfinished(
      { ...record, agent, milliseconds, begun },
      refusals.cancelled('task_cancelled'),
    );
  }

  /**
   * The questions of a run with other rights may hold what it read: the task is run from the top, with the answers so far. Where replicas
   * serve different policies the next run may have other rights again, and so polls alone run nothing over and over.
   * @returns undefined: not now
   */
  private async askAgain(taskId: string, { run }: TaskRecord): Promise<TaskRecord | undefined> {
    const now = this.records.now();
    const changed = await this.records.change(taskId, (current) =>
      current.status === 'input_required' &&
      current.run === run &&
      Math.abs(now - current.lastUpdatedAt) >= BETWEEN_RUNS
        ? nextRun(current)
        : null,
    );
    if (changed) await this.queue.push(toJob(taskId, changed));
    return changed;
  }

  private async findOwned(taskId: string, owner: Owner): Promise<TaskRecord | undefined> {
    const record = await this.largeReads.run(owner.principal, () => this.records.find(taskId));
    return record && isSameOwner(record.owner, owner) ? record : undefined;
  }

  /** A run whose job was lost, between a record and its job or with a worker, is queued again at the next poll. */
  private async revive(taskId: string, record: TaskRecord): Promise<void> {
    const { status, lastUpdatedAt } = record;
    // A record from the future is as old as it can be: the clock was set back, and a run that is alive writes a new time.
    const silence = Math.abs(this.records.now() - lastUpdatedAt);
    if (status !== 'working' || silence < this.settings.heartbeat * MAX_MISSED_HEARTBEATS) return;
    await this.queue.push(toJob(taskId, record));
  }

  private state(taskId: string, record: TaskRecord): TaskState {
    return taskState(taskId, record, this.settings.lifetime);
  }
}

function toJob(taskId: string, { run, owner }: TaskRecord): TaskJob {
  return { taskId, run, owner: owner.principal };
}

function newRecord(call: TaskCall, agent: string, now: number): TaskRecord {
  const { tool, args, version, capabilities, correlationId, began, soFar, approval } = call;
  return {
    owner: toOwner(call.agent),
    agent,
    tool,
    args,
    version,
    capabilities,
    ...(correlationId !== undefined && { correlationId }),
    ...(began !== undefined && { began }),
    ...(soFar && { soFar }),
    ...(approval && { approval }),
    status: 'working',
    createdAt: now,
    lastUpdatedAt: now,
    open: {},
    responses: {},
    run: 1,
    begun: false,
  };
}

/** The next run is due when every client request is answered; until then the task stays waiting. */
function withAnswers(record: TaskRecord, given: JsonObject): TaskRecord | null {
  if (record.status !== 'input_required') return null;
  const asked = Object.entries(given).filter(([key]) => Object.hasOwn(listUnanswered(record), key));
  if (asked.length === 0) return null;
  const responses = { ...record.responses, ...Object.fromEntries(asked) };
  if (Object.keys(listUnanswered({ ...record, responses })).length > 0) return { ...record, responses };
  return nextRun({ ...record, responses });
}

function nextRun(record: TaskRecord): TaskRecord {
  return {
    ...record,
    status: 'working',
    run: record.run + 1,
    begun: false,
    changedBy: undefined,
    endedBy: undefined,
  };
}

function waitForEnd(bus: MessageBus, taskId: string, timeout: number): Promise<unknown> {
  const ended = bus.messages(ENDED_TOPIC).pipe(filter((message) => message['taskId'] === taskId));
  return firstValueFrom(merge(ended, timer(timeout)));
}

/** Null: a further task may be created. */
async function findRefusal(
  begun: Pick<RateLimiter, 'check' | 'rate'>,
  principal: string,
): Promise<Refusal | null> {
  const tooMany = await spendLimit(begun, principal, () => undefined);
  return tooMany && refusals.rateLimited(tooMany.limit, tooMany.window, tooMany.retryAfter);
}
