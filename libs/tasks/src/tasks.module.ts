import {
  Inject,
  Injectable,
  Logger,
  Module,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import type { Subscription } from 'rxjs';
import { CoreModule, provideFromInstance } from '#core';
import { BackgroundCalls, CallJournal, DispatcherModule, StateKeysModule } from '#dispatcher';
import { StateModule, SuspendedAgents } from '#state';
import { Telemetry, TelemetryModule } from '#telemetry';
import { ToolRunner, ToolsModule } from '#tools';
import { StoredTaskService } from './stored-task-service.js';
import { TaskQueue } from './task-queue.js';
import { AgentReferences, TaskRecords, TaskSettings } from './task-records.js';
import { TaskWorker } from './task-worker.js';

/** Calls that continue after their answer; durations in seconds. */
export interface TasksModuleOptions {
  readonly lifetime: number;
  readonly heartbeat: number;
  /** Maximum tasks that one principal may create within a lifetime. */
  readonly maxPerPrincipal: number;
  /** Whether processing begins only with `TaskService.begin`: the tools are registered later. */
  readonly held: boolean;
}

export const TASK_OPTIONS = Symbol('options of tasks');

function readSettings({ lifetime, heartbeat, maxPerPrincipal }: TasksModuleOptions): TaskSettings {
  return {
    lifetime: lifetime * 1000,
    heartbeat: heartbeat * 1000,
    maxPerPrincipal,
  };
}

/** Processes tasks from the registration of all tools until the application closes. */
@Injectable()
export class TaskService implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('Tasks');
  private following: Subscription | null = null;

  constructor(
    private readonly worker: TaskWorker,
    private readonly queue: TaskQueue,
    private readonly tasks: StoredTaskService,
    private readonly suspended: SuspendedAgents,
    @Inject(TASK_OPTIONS) private readonly options: Pick<TasksModuleOptions, 'held'>,
  ) {}

  onApplicationBootstrap(): void {
    if (!this.options.held) this.begin();
  }

  /** Called once. A task whose tool is not registered yet would fail. */
  begin(): void {
    this.queue.work((job) => this.worker.handle(job));
    this.following = this.suspended.changes.subscribe((agents) => {
      for (const agent of agents)
        this.tasks
          .cancelAll(agent)
          .catch((error: unknown) =>
            this.logger.warn(`tasks of a suspended agent were not cancelled: ${String(error)}`),
          );
    });
  }

  /** Starts no further tasks that others could run, and lets running ones end. @param grace milliseconds that they have */
  async drain(grace: number): Promise<void> {
    const over = new AbortController();
    const late = pause(grace, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([this.queue.drain().catch(() => undefined), late]);
    over.abort();
  }

  async onModuleDestroy(): Promise<void> {
    this.following?.unsubscribe();
    this.worker.close();
    await this.queue.close();
  }
}

/** Tasks as records in the shared state, and the worker of this process. */
@Module({
  imports: [CoreModule, StateModule, StateKeysModule, ToolsModule, DispatcherModule, TelemetryModule],
  providers: [
    provideFromInstance(TaskQueue),
    { provide: TaskSettings, useFactory: readSettings, inject: [TASK_OPTIONS] },
    TaskRecords,
    AgentReferences,
    {
      provide: BackgroundCalls,
      useFactory: (runner: ToolRunner, journal: CallJournal, telemetry: Telemetry | null) =>
        new BackgroundCalls(runner, new Logger('Tasks'), journal, telemetry ?? undefined),
      inject: [ToolRunner, CallJournal, Telemetry],
    },
    StoredTaskService,
    TaskWorker,
    TaskService,
  ],
  exports: [TaskQueue, StoredTaskService, TaskWorker, TaskService],
})
export class TasksModule {}
