import { Logger, type OnApplicationBootstrap, type OnModuleDestroy, type Provider } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import type { SharedState } from '#cluster';
import { BackgroundCalls, CallJournal, SealedText, TaskDesk } from '#dispatcher';
import {
  AgentReferences,
  type ConfiguredAgents,
  StoredTaskDesk,
  type TaskQueue,
  TaskRecords,
  type TaskSettings,
  TaskWorker,
} from '#jobs';
import { Telemetry } from '#telemetry';
import { ToolRegistry, ToolRunner } from '#tools';
import type { LoadedConfig } from '#config';
import { stateKeys } from './input-rounds.js';

export interface TaskParts {
  readonly config: LoadedConfig['config'];
  readonly configured: ConfiguredAgents;
  readonly shared: SharedState;
  readonly queue: TaskQueue;
  /** Whether work begins only when it is told to. */
  readonly held: boolean;
}

/** Works on tasks from the moment every tool is there until the service closes. */
export class TaskService implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    private readonly worker: TaskWorker,
    private readonly queue: TaskQueue,
    private readonly held: boolean,
  ) {}

  onApplicationBootstrap(): void {
    if (!this.held) this.begin();
  }

  /** Once. A task whose tool is not there yet would fail. */
  begin(): void {
    this.queue.work((job) => this.worker.handle(job));
  }

  /** Begins no more tasks that others could run, and lets those that run end. @param grace milliseconds they have */
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

export function taskProviders({ config, configured, shared, queue, held }: TaskParts): Provider[] {
  const { lifetime, pollInterval, heartbeat, maxPerPrincipal } = config.tasks;
  const begun = shared.limiters.limiter('tasks', { limit: maxPerPrincipal, window: lifetime });
  const settings: TaskSettings = {
    lifetime: lifetime * 1000,
    pollInterval: pollInterval * 1000,
    heartbeat: heartbeat * 1000,
  };
  const records = new TaskRecords(shared.tasks, settings.lifetime);
  const keys = stateKeys(config.server, shared);
  const agents = new AgentReferences(configured, new SealedText(keys, 'parley task agent'));
  const { bus, oneTime } = shared;
  return [
    {
      provide: BackgroundCalls,
      useFactory: (runner: ToolRunner, journal: CallJournal, telemetry: Telemetry | null) =>
        new BackgroundCalls(runner, new Logger('Tasks'), journal, telemetry ?? undefined),
      inject: [ToolRunner, CallJournal, Telemetry],
    },
    {
      provide: TaskDesk,
      useFactory: (calls: BackgroundCalls) =>
        new StoredTaskDesk({ records, queue, bus, agents, settings, begun, calls }),
      inject: [BackgroundCalls],
    },
    {
      provide: TaskWorker,
      useFactory: (calls: BackgroundCalls, registry: ToolRegistry) =>
        new TaskWorker({ records, calls, registry, agents, bus, oneTime, settings }),
      inject: [BackgroundCalls, ToolRegistry],
    },
    {
      provide: TaskService,
      useFactory: (worker: TaskWorker) => new TaskService(worker, queue, held),
      inject: [TaskWorker],
    },
  ];
}
