import {
  type DynamicModule,
  Logger,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { CurrentAgents } from '#core';
import { SharedState } from '#state';
import { BackgroundCalls, CallJournal, SealedText, StateKeys, TaskStore } from '#dispatcher';
import { Telemetry } from '#telemetry';
import { ToolRegistry, ToolRunner } from '#tools';
import { AgentReferences, TaskRecords, type TaskSettings } from './task-records.js';
import { StoredTaskService } from './stored-task-desk.js';
import { TaskQueue } from './task-queue.js';
import { TaskWorker } from './task-worker.js';

/** Calls that continue after their answer; durations in seconds. */
export interface TasksModuleOptions {
  readonly lifetime: number;
  readonly pollInterval: number;
  readonly heartbeat: number;
  /** Maximum tasks that one principal may create within a lifetime. */
  readonly maxPerPrincipal: number;
  /** Whether processing begins only with `TaskService.begin`: the tools are registered later. */
  readonly held: boolean;
}

/** Processes tasks from the registration of all tools until the application closes. */
export class TaskService implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    private readonly worker: TaskWorker,
    private readonly queue: TaskQueue,
    private readonly held: boolean,
  ) {}

  onApplicationBootstrap(): void {
    if (!this.held) this.begin();
  }

  /** Called once. A task whose tool is not registered yet would fail. */
  begin(): void {
    this.queue.work((job) => this.worker.handle(job));
  }

  /** Starts no further tasks that others could run, and lets running ones end. @param grace milliseconds that they have */
  async drain(grace: number): Promise<void> {
    const over = new AbortController();
    const late = pause(grace, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([this.queue.drain().catch(() => undefined), late]);
    over.abort();
  }

  async onModuleDestroy(): Promise<void> {
    this.worker.close();
    await this.queue.close();
  }
}

/** Tasks as records in the shared state, and the worker of this process. */
@Module({})
export class TasksModule {
  /** @param imports provide the dispatcher, telemetry, the agents, the state keys and the shared state */
  static register(
    { lifetime, pollInterval, heartbeat, maxPerPrincipal, held }: TasksModuleOptions,
    queue: TaskQueue,
    imports: ModuleMetadata['imports'],
  ): DynamicModule {
    const settings: TaskSettings = {
      lifetime: lifetime * 1000,
      pollInterval: pollInterval * 1000,
      heartbeat: heartbeat * 1000,
    };
    return {
      module: TasksModule,
      imports: [...(imports ?? [])],
      providers: [
        { provide: TaskQueue, useValue: queue },
        {
          provide: TaskRecords,
          useFactory: ({ tasks }: SharedState) => new TaskRecords(tasks, settings.lifetime),
          inject: [SharedState],
        },
        {
          provide: AgentReferences,
          useFactory: (agents: CurrentAgents, keys: StateKeys) =>
            new AgentReferences(agents, new SealedText(keys, 'parley task agent')),
          inject: [CurrentAgents, StateKeys],
        },
        {
          provide: BackgroundCalls,
          useFactory: (runner: ToolRunner, journal: CallJournal, telemetry: Telemetry | null) =>
            new BackgroundCalls(runner, new Logger('Tasks'), journal, telemetry ?? undefined),
          inject: [ToolRunner, CallJournal, Telemetry],
        },
        {
          provide: TaskStore,
          useFactory: (
            records: TaskRecords,
            agents: AgentReferences,
            calls: BackgroundCalls,
            { bus, limiters }: SharedState,
          ) => {
            const begun = limiters.limiter('tasks', { limit: maxPerPrincipal, window: lifetime });
            return new StoredTaskService({ records, queue, bus, agents, settings, begun, calls });
          },
          inject: [TaskRecords, AgentReferences, BackgroundCalls, SharedState],
        },
        {
          provide: TaskWorker,
          useFactory: (
            records: TaskRecords,
            agents: AgentReferences,
            calls: BackgroundCalls,
            registry: ToolRegistry,
            { bus, oneTime }: SharedState,
          ) => new TaskWorker({ records, calls, registry, agents, bus, oneTime, settings }),
          inject: [TaskRecords, AgentReferences, BackgroundCalls, ToolRegistry, SharedState],
        },
        {
          provide: TaskService,
          useFactory: (worker: TaskWorker) => new TaskService(worker, queue, held),
          inject: [TaskWorker],
        },
      ],
      exports: [TaskQueue, TaskStore, TaskWorker, TaskService],
    };
  }
}
