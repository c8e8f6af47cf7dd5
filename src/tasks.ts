import { Logger, type OnApplicationBootstrap, type OnModuleDestroy, type Provider } from '@nestjs/common';
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
import { ToolRegistry, ToolRunner } from '#tools';
import type { LoadedConfig } from './config/load-config.js';
import { stateKeys } from './input-rounds.js';

export interface TaskParts {
  readonly config: LoadedConfig['config'];
  readonly configured: ConfiguredAgents;
  readonly shared: SharedState;
  readonly queue: TaskQueue;
}

/** Works on tasks from the moment everything is there until the service closes. */
class TaskService implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    private readonly worker: TaskWorker,
    private readonly queue: TaskQueue,
  ) {}

  onApplicationBootstrap(): void {
    this.queue.work((job) => this.worker.handle(job));
  }

  async onModuleDestroy(): Promise<void> {
    this.worker.close();
    await this.queue.close();
  }
}

export function taskProviders({ config, configured, shared, queue }: TaskParts): Provider[] {
  const { lifetime, pollInterval, heartbeat } = config.tasks;
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
      useFactory: (runner: ToolRunner, journal: CallJournal) =>
        new BackgroundCalls(runner, new Logger('Tasks'), journal),
      inject: [ToolRunner, CallJournal],
    },
    {
      provide: TaskDesk,
      useFactory: (calls: BackgroundCalls) =>
        new StoredTaskDesk({ records, queue, bus, agents, settings, calls }),
      inject: [BackgroundCalls],
    },
    {
      provide: TaskService,
      useFactory: (calls: BackgroundCalls, registry: ToolRegistry) => {
        const parts = { records, calls, registry, agents, bus, oneTime, settings };
        return new TaskService(new TaskWorker(parts), queue);
      },
      inject: [BackgroundCalls, ToolRegistry],
    },
  ];
}
