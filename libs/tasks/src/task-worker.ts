import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { filter, type Subscription } from 'rxjs';
import { type Agent, CurrentAgents, refusals, refuse, RUN_REPLACED, SERVER_SHUTDOWN } from '#core';
import { type MessageBus, type OneTimeStore, SharedState } from '#state';
import { BackgroundCalls, type BackgroundOutcome, RPC, RUN_HANDED_OVER } from '#dispatcher';
import { mayChangeData, ToolRegistry } from '#tools';
import { TaskHandedOver, type TaskJob } from './task-queue.js';
import {
  AgentReferences,
  CANCELLED_TOPIC,
  ENDED_TOPIC,
  hasEnded,
  type TaskRecord,
  TaskRecords,
  TaskSettings,
} from './task-records.js';

interface RunningTask {
  /** Of this attempt at the run. */
  readonly attempt: string;
  readonly agent: Agent;
  readonly isRead: boolean;
  readonly controller: AbortController;
  mayRunAgain: boolean;
  /** That it changes data is being noted, or is. */
  noted?: Promise<void> | undefined;
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
  private readonly running = new Map<string, RunningTask>();
  private readonly bus: MessageBus;
  private readonly oneTime: OneTimeStore;
  private readonly listening: Subscription;
  private readonly following: Subscription;

  constructor(
    private readonly records: TaskRecords,
    private readonly agents: AgentReferences,
    private readonly calls: BackgroundCalls,
    @Inject(ToolRegistry) private readonly registry: Pick<ToolRegistry, 'get'>,
    private readonly settings: TaskSettings,
    @Inject(SharedState) { bus, oneTime }: Pick<SharedState, 'bus' | 'oneTime'>,
    @Inject(CurrentAgents) current: Pick<CurrentAgents, 'changes' | 'isCurrent'>,
  ) {
    this.bus = bus;
    this.oneTime = oneTime;
    this.listening = bus
      .messages(CANCELLED_TOPIC)
      .pipe(filter(({ taskId }) => typeof taskId === 'string'))
      .subscribe(({ taskId }) => this.running.get(taskId as string)?.controller.abort('task_cancelled'));
    // A read is run again with the rights of now. What may have changed data goes on to its end.
    this.following = current.changes.subscribe(() => {
      for (const { agent, controller, mayRunAgain } of this.running.values())
        if (mayRunAgain && !current.isCurrent(agent)) controller.abort(RUN_HANDED_OVER);
    });
  }

  /** Runs in progress. */
  get active(): number {
    return this.running.size;
  }

  /** @throws TaskHandedOver when this worker closes before the run has ended */
  async handle({ taskId, run }: TaskJob): Promise<void> {
    // The job was assigned to this worker while it closed.
    if (this.closing) throw new TaskHandedOver();
    const { records } = this;
    const seen = await records.find(taskId);
    if (!seen || !isDue(seen, run)) return;
    if (seen.begun && !this.mayRunAgain(seen)) return this.giveUp(taskId, seen);
    const begun = await records.change(taskId, (record) =>
      isDue(record, run) && record.begun === seen.begun ? { ...record, begun: true } : null,
    );
    if (begun) await this.runToEnd(taskId, begun);
  }

  /** Ends the runs of this worker, so that other workers take them over. */
  close(): void {
    this.closing = true;
    this.listening.unsubscribe();
    this.following.unsubscribe();
    for (const { controller, mayRunAgain } of this.running.values())
      controller.abort(mayRunAgain ? RUN_HANDED_OVER : SERVER_SHUTDOWN);
  }

  /** The worker of its run died, so no worker recorded how the run ended. */
  private async giveUp(taskId: string, record: TaskRecord): Promise<void> {
    if (!(await this.settle(taskId, record.run, TASK_INTERRUPTED))) return;
    const { agents, calls, records } = this;
    const agent = await agents.read(record.agent, taskId);
    if (!agent) return calls.recordOrphaned({ ...record, taskId });
    calls.recordUnfinished(
      { ...record, agent, milliseconds: records.measureAge(record) },
      refusals.internalError(record.tool, 'the worker of this task ended before its run did'),
    );
  }

  /** A read whose agent got other rights meanwhile is run again at once. */
  private async runToEnd(taskId: string, record: TaskRecord): Promise<void> {
    for (;;) {
      const agent = await this.agents.read(record.agent, taskId);
      if (!agent) {
        this.calls.recordOrphaned({ ...record, taskId });
        await this.settle(taskId, record.run, AGENT_GONE);
        return;
      }
      const controller = new AbortController();
      const attempt = randomUUID();
      const outcome = await this.runTask(taskId, record, { attempt, agent, controller });
      if (controller.signal.reason === RUN_HANDED_OVER && !this.closing) continue;
      const rights = this.agents.digestRights(agent);
      await this.settle(taskId, record.run, outcome, { attempt, rights });
      return;
    }
  }

  private async runTask(
    taskId: string,
    record: TaskRecord,
    begun: Pick<RunningTask, 'attempt' | 'agent' | 'controller'>,
  ): Promise<BackgroundOutcome> {
    const { calls, oneTime } = this;
    const { agent, controller } = begun;
    const mayRunAgain = this.mayRunAgain(record);
    this.running.set(taskId, { ...begun, isRead: mayRunAgain, mayRunAgain });
    const heartbeat = setInterval(() => void this.beat(taskId, record.run), this.settings.heartbeat);
    try {
      const { tool, args, version, capabilities, correlationId, began, soFar, responses, approval } = record;
      const outcome = await calls.run({
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
        signal: controller.signal,
        beforeChange: () => this.noteChange(taskId, record.run),
        useOnce: (name) => oneTime.claim(`decision:${name}`, this.settings.lifetime, agent.principal),
        progress: () => undefined,
      });
      return this.closing && controller.signal.aborted ? TASK_INTERRUPTED : outcome;
    } finally {
      clearInterval(heartbeat);
      this.running.delete(taskId);
      if (this.closing) await this.handOver(taskId, record);
    }
  }

  /** @throws TaskHandedOver, which passes the run to another worker */
  private async handOver(taskId: string, { run }: TaskRecord): Promise<void> {
    const record = await this.records.find(taskId);
    if (!record || !isDue(record, run) || !this.mayRunAgain(record)) return;
    throw new TaskHandedOver();
  }

  /**
   * A run that only reads calls a tool that may change data: from now on it is not run again.
   * @throws Refused when the run is over, or is to run again
   */
  private async noteChange(taskId: string, run: number): Promise<void> {
    const running = this.running.get(taskId);
    if (!running || running.controller.signal.aborted) throw refuse.cancelled();
    if (!running.isRead) return;
    running.mayRunAgain = false;
    running.noted ??= this.storeChange(taskId, run, running).catch((error: unknown) => {
      running.noted = undefined;
      throw error;
    });
    await running.noted;
  }

  /** Another worker may take a run for lost that is slow: one attempt changes data, and the other one ends here. */
  private async storeChange(
    taskId: string,
    run: number,
    { attempt, controller }: RunningTask,
  ): Promise<void> {
    let isOver = true;
    const noted = await this.records.change(taskId, (record) => {
      isOver = !isDue(record, run);
      return !isOver && isOf(record, attempt) ? { ...record, changedBy: attempt } : null;
    });
    if (noted) return;
    controller.abort(isOver ? 'task_cancelled' : RUN_REPLACED);
    throw refuse.cancelled(controller.signal.reason);
  }

  /** Marks the run as alive, and notices a cancellation whose message was lost. */
  private async beat(taskId: string, run: number): Promise<void> {
    try {
      const alive = await this.records.change(taskId, (record) => (isDue(record, run) ? record : null));
      if (!alive) this.running.get(taskId)?.controller.abort('task_cancelled');
    } catch {
      // The next heartbeat reads the record again.
    }
  }

  /** @param attempt that ended so; absent: none is left. @returns whether this was how the run ended */
  private async settle(
    taskId: string,
    run: number,
    outcome: BackgroundOutcome,
    { attempt, rights }: { readonly attempt?: string; readonly rights?: string } = {},
  ): Promise<boolean> {
    const settled = await this.records.change(taskId, (record) =>
      isDue(record, run) && (attempt === undefined || isOf(record, attempt))
        ? { ...record, ...toSettlement(outcome), ...(rights !== undefined && { rights }) }
        : null,
    );
    // For a caller that still waits; others poll.
    if (settled) await this.bus.publish(ENDED_TOPIC, { taskId }).catch(() => undefined);
    return settled !== undefined;
  }

  private mayRunAgain({ tool, changedBy }: TaskRecord): boolean {
    const definition = this.registry.get(tool)?.definition;
    return changedBy === undefined && definition !== undefined && !mayChangeData(definition);
  }
}

/** Whether no other attempt has changed data. */
const isOf = ({ changedBy }: TaskRecord, attempt: string): boolean =>
  changedBy === undefined || changedBy === attempt;

const isDue = (record: TaskRecord, run: number): boolean =>
  !hasEnded(record) && record.status === 'working' && record.run === run;

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
