import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Subscription } from 'rxjs';
import {
  type Agent,
  CurrentAgents,
  type Refusal,
  refusals,
  refuse,
  RUN_REPLACED,
  SERVER_SHUTDOWN,
} from '#core';
import { type MessageBus, type OneTimeStore, SharedState, SharedStateUnavailable } from '#state';
import { BackgroundCalls, type BackgroundOutcome, RPC } from '#dispatcher';
import { TaskHandedOver, type TaskJob } from './task-queue.js';
import {
  AgentReferences,
  CANCELLED_TOPIC,
  ENDED_TOPIC,
  type TaskRecord,
  TaskRecords,
  TaskSettings,
} from './task-records.js';

const TASK_CANCELLED = 'task_cancelled';
/** Another attempt takes the place of this one, with the rights of then. */
const RUN_HANDED_OVER = 'run_handed_over';

/** Milliseconds before an end is stored again while Redis is away, and how often. */
const BETWEEN_STORES = 1_000;
const MOST_STORES = 60;

/** What the record of a task knows an attempt by. */
interface AttemptKey {
  readonly taskId: string;
  readonly run: number;
  /** Of all attempts of one worker at that run: they follow each other. */
  readonly id: string;
}

/** One attempt at a run. What it starts holds it, so that what is left of it acts for no other one. */
class Attempt {
  /** That it changes data is being noted, or is; with why it may not. */
  noted: Promise<string | undefined> | undefined;
  isEnding = false;
  private readonly controller = new AbortController();

  constructor(
    readonly key: AttemptKey,
    readonly agent: Agent,
  ) {}

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** It has changed nothing, and its outcome is not recorded. */
  get mayRunAgain(): boolean {
    return !this.noted && !this.isEnding;
  }

  get isHandedOver(): boolean {
    return this.signal.reason === RUN_HANDED_OVER;
  }

  end(reason: string): void {
    this.controller.abort(reason);
  }
}

const toFailure = (message: string): BackgroundOutcome => ({
  kind: 'error',
  error: { code: RPC.internalError, message },
});
const AGENT_GONE = toFailure('The agent of this task no longer exists');
const TASK_INTERRUPTED = toFailure('The task was interrupted and is not run again: it may have changed data');

/** Runs tasks that are due. A run that changes data happens once: where a worker died in the middle, the task has failed. */
@Injectable()
export class TaskWorker {
  private closing = false;
  /** By task and run. */
  private readonly runs = new Map<string, Promise<void>>();
  private readonly attempts = new Set<Attempt>();
  private readonly bus: MessageBus;
  private readonly oneTime: OneTimeStore;
  private readonly listening: Subscription;
  private readonly following: Subscription;

  constructor(
    private readonly records: TaskRecords,
    private readonly agents: AgentReferences,
    private readonly calls: BackgroundCalls,
    private readonly settings: TaskSettings,
    @Inject(SharedState) { bus, oneTime }: Pick<SharedState, 'bus' | 'oneTime'>,
    @Inject(CurrentAgents) private readonly current: Pick<CurrentAgents, 'changes' | 'isCurrent'>,
  ) {
    this.bus = bus;
    this.oneTime = oneTime;
    this.listening = bus.messages(CANCELLED_TOPIC).subscribe(({ taskId }) => {
      for (const attempt of this.attempts) if (attempt.key.taskId === taskId) attempt.end(TASK_CANCELLED);
    });
    this.following = current.changes.subscribe(() => {
      for (const attempt of this.attempts) this.followRights(attempt);
    });
  }

  /** Runs in progress. */
  get active(): number {
    return this.attempts.size;
  }

  /**
   * A job whose lock was lost is assigned again, maybe to the worker that still runs it: the run then ends both.
   * @throws TaskHandedOver when this worker closes before the run has ended
   */
  handle(job: TaskJob): Promise<void> {
    const name = `${job.taskId}.${job.run}`;
    const running = this.runs.get(name) ?? this.begin(job).finally(() => this.runs.delete(name));
    this.runs.set(name, running);
    return running;
  }

  /** Ends the runs of this worker, so that other workers take them over. One that waits for its record has an outcome. */
  close(): void {
    this.closing = true;
    this.listening.unsubscribe();
    this.following.unsubscribe();
    for (const attempt of this.attempts) {
      if (!attempt.isEnding) attempt.end(attempt.mayRunAgain ? RUN_HANDED_OVER : SERVER_SHUTDOWN);
    }
  }

  private async begin({ taskId, run }: TaskJob): Promise<void> {
    // The job was assigned to this worker while it closed.
    if (this.closing) throw new TaskHandedOver();
    const taken = await this.records.change(taskId, (record) => {
      if (isUntold(record, run)) return { ...record, endedBy: 'another worker' };
      if (!isDue(record, run)) return null;
      if (record.changedBy !== undefined) return { ...record, ...toSettlement(TASK_INTERRUPTED) };
      return { ...record, begun: true, ran: true, endedBy: undefined };
    });
    if (!taken) return;
    return isDue(taken, run) ? this.runToEnd(taskId, taken) : this.recordLoss(taskId, taken);
  }

  /** The worker of the run is dead where its job is assigned again, and so none recorded how the run ended. */
  private async recordLoss(taskId: string, record: TaskRecord): Promise<void> {
    await this.announceEnd(taskId);
    const agent = await this.agents.read(record.agent, taskId);
    const died = 'the worker of this task ended before its run did';
    const refusal =
      record.status === 'cancelled'
        ? refusals.cancelled(TASK_CANCELLED)
        : refusals.internalError(record.tool, died);
    this.recordUnfinished(taskId, record, agent, refusal);
  }

  /** A run that has changed nothing, and whose agent got other rights meanwhile, begins again at once. */
  private async runToEnd(taskId: string, record: TaskRecord): Promise<void> {
    const { agents, calls } = this;
    const key = { taskId, run: record.run, id: randomUUID() };
    for (;;) {
      const agent = await agents.read(record.agent, taskId);
      if (this.closing) return this.handOver(key, record, agent);
      if (!agent) {
        if (await this.settle(key, AGENT_GONE)) calls.recordOrphaned({ ...record, taskId });
        return;
      }
      const attempt = new Attempt(key, agent);
      const outcome = await this.runAttempt(attempt, record);
      if (attempt.isHandedOver) continue;
      const isInterrupted = this.closing && attempt.signal.aborted;
      const rights = agents.digestRights(agent);
      await this.settle(key, isInterrupted ? TASK_INTERRUPTED : outcome, { rights });
      return;
    }
  }

  private async runAttempt(attempt: Attempt, record: TaskRecord): Promise<BackgroundOutcome> {
    const { calls, oneTime, settings } = this;
    const { agent, signal, key } = attempt;
    const { taskId } = key;
    this.attempts.add(attempt);
    const heartbeat = setInterval(() => void this.beat(attempt), settings.heartbeat);
    try {
      const { tool, args, version, capabilities, correlationId, began, soFar, responses, approval } = record;
      return await calls.run({
        taskId,
        agent,
        tool,
        args,
        version,
        capabilities,
        soFar,
        responses,
        ...(correlationId !== undefined && { correlationId }),
        ...(began !== undefined && { began }),
        ...(approval && { approval }),
        signal,
        beforeChange: () => this.noteChange(attempt),
        claimEnd: () => this.claimEnd(attempt),
        useOnce: (name) => oneTime.claim(`decision:${name}`, settings.lifetime, agent.principal),
        progress: () => undefined,
      });
    } finally {
      clearInterval(heartbeat);
      this.attempts.delete(attempt);
    }
  }

  /**
   * The run has changed nothing, also where the record says that it does: the answer to that note was lost.
   * @throws TaskHandedOver, which passes the run to another worker, unless it is over
   */
  private async handOver(key: AttemptKey, record: TaskRecord, agent: Agent | undefined): Promise<void> {
    const end = await this.change(key, (current, ended) =>
      ended === undefined ? { ...current, begun: false, changedBy: undefined } : null,
    );
    if (end === undefined) throw new TaskHandedOver();
    if (end === TASK_CANCELLED) this.recordUnfinished(key.taskId, record, agent, refusals.cancelled(end));
  }

  private recordUnfinished(
    taskId: string,
    record: TaskRecord,
    agent: Agent | undefined,
    refusal: Refusal,
  ): void {
    const { calls, records } = this;
    if (!agent) return calls.recordOrphaned({ ...record, taskId });
    calls.recordUnfinished({ ...record, agent, milliseconds: records.measureAge(record) }, refusal);
  }

  /** Work that has changed nothing continues with the rights of now only. */
  private followRights(attempt: Attempt): void {
    if (attempt.mayRunAgain && !this.current.isCurrent(attempt.agent)) attempt.end(RUN_HANDED_OVER);
  }

  /**
   * The attempt calls a tool that may change data: from now on the run is not begun again.
   * @throws Refused when the run is over, is that of another attempt, or is to run again
   */
  private async noteChange(attempt: Attempt): Promise<void> {
    const { signal } = attempt;
    if (signal.aborted) throw refuse.cancelled(signal.reason);
    const { id } = attempt.key;
    const noted = (attempt.noted ??= this.change(attempt.key, (record, ended) =>
      ended === undefined ? { ...record, changedBy: id } : null,
    ));
    const end = await noted.catch((error: unknown) => {
      // This call changes nothing. One that follows notes it again.
      if (attempt.noted === noted) attempt.noted = undefined;
      this.followRights(attempt);
      throw error instanceof SharedStateUnavailable ? refuse.changeNotNoted() : error;
    });
    if (end !== undefined) attempt.end(end);
    if (signal.aborted) throw refuse.cancelled(signal.reason);
  }

  /**
   * A worker that is slow may be taken for dead, so that a run has two attempts.
   * @returns whether this one ends the run, and so its outcome is recorded: also where that is not known
   */
  private async claimEnd(attempt: Attempt): Promise<boolean> {
    if (attempt.isHandedOver) return false;
    attempt.isEnding = true;
    try {
      const { id } = attempt.key;
      const end = await this.change(attempt.key, (record, ended) =>
        ended === RUN_REPLACED ? null : { ...record, endedBy: id },
      );
      return end !== RUN_REPLACED;
    } catch {
      return true;
    }
  }

  /** Marks the run as alive, and notices a cancellation whose message was lost. */
  private async beat(attempt: Attempt): Promise<void> {
    try {
      const end = await this.change(attempt.key, (record, ended) => (ended === undefined ? record : null));
      if (end !== undefined) attempt.end(end);
    } catch {
      // The next heartbeat reads the record again.
    }
  }

  /** @returns whether this was how the run ended */
  private async settle(
    key: AttemptKey,
    outcome: BackgroundOutcome,
    notes: Pick<TaskRecord, 'rights'> = {},
  ): Promise<boolean> {
    const settled = { ...toSettlement(outcome), ...notes, endedBy: key.id };
    for (let stores = 1; ; stores += 1) {
      try {
        const end = await this.change(key, (record, ended) =>
          ended === undefined ? { ...record, ...settled } : null,
        );
        if (end === undefined) await this.announceEnd(key.taskId);
        return end === undefined;
      } catch (error) {
        // What was done is not done again because it could not be stored at once.
        if (this.closing || stores === MOST_STORES || !(error instanceof SharedStateUnavailable)) throw error;
        await pause(BETWEEN_STORES);
      }
    }
  }

  /** For a caller that still waits; others poll. */
  private async announceEnd(taskId: string): Promise<void> {
    await this.bus.publish(ENDED_TOPIC, { taskId }).catch(() => undefined);
  }

  /** @param change of the record, given why the attempt has to end. @returns why it has to; undefined: it goes on */
  private async change(
    key: AttemptKey,
    change: (record: TaskRecord, end: string | undefined) => TaskRecord | null,
  ): Promise<string | undefined> {
    let end: string | undefined = TASK_CANCELLED;
    await this.records.change(key.taskId, (record) => change(record, (end = findEnd(key, record))));
    return end;
  }
}

/** Why an attempt has to end; undefined: it goes on, and it alone once the record names it. */
function findEnd({ run, id }: AttemptKey, record: TaskRecord): string | undefined {
  const { changedBy, endedBy, status } = record;
  if (record.run !== run || (changedBy ?? endedBy ?? id) !== id) return RUN_REPLACED;
  return status === 'working' ? undefined : TASK_CANCELLED;
}

/** Who cancels a run that has begun leaves its record to its worker, and none has made it. */
const isUntold = ({ status, begun, endedBy, run: current }: TaskRecord, run: number): boolean =>
  status === 'cancelled' && current === run && begun && endedBy === undefined;

const isDue = (record: TaskRecord, run: number): boolean => record.status === 'working' && record.run === run;

function toSettlement(outcome: BackgroundOutcome): Partial<TaskRecord> {
  switch (outcome.kind) {
    case 'result':
      return { status: 'completed', result: outcome.result };
    case 'error':
      return { status: 'failed', error: outcome.error };
    case 'input':
      return { status: 'input_required', soFar: outcome.soFar, open: outcome.requests, responses: {} };
  }
}
