import {
  type DynamicModule,
  Inject,
  Injectable,
  Logger,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { BackgroundCalls, CallJournal, TaskStore } from '#dispatcher';
import { Telemetry } from '#telemetry';
import { ToolRunner } from '#tools';
import { StoredTaskService } from './stored-task-service.js';
import { TaskQueue } from './task-queue.js';
import { AgentReferences, TaskRecords, TaskSettings } from './task-records.js';
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

/** Whether processing begins only with `TaskService.begin`. */
const HELD = Symbol('tasks are held');

/** Processes tasks from the registration of all tools until the application closes. */
@Injectable()
export class TaskService implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    private readonly worker: TaskWorker,
    private readonly queue: TaskQueue,
    @Inject(HELD) private readonly held: boolean,
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
      maxPerPrincipal,
    };
    return {
      module: TasksModule,
      imports: [...(imports ?? [])],
      providers: [
        { provide: TaskQueue, useValue: queue },
        { provide: TaskSettings, useValue: settings },
        { provide: HELD, useValue: held },
        TaskRecords,
        AgentReferences,
        {
          provide: BackgroundCalls,
          useFactory: (runner: ToolRunner, journal: CallJournal, telemetry: Telemetry | null) =>
            new BackgroundCalls(runner, new Logger('Tasks'), journal, telemetry ?? undefined),
          inject: [ToolRunner, CallJournal, Telemetry],
        },
        { provide: TaskStore, useClass: StoredTaskService },
        TaskWorker,
        TaskService,
      ],
      exports: [TaskQueue, TaskStore, TaskWorker, TaskService],
    };
  }
}
