import { type INestApplicationContext, Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { openSharedState, type SharedState } from '#cluster';
import {
  AppModule,
  checkFilterNames,
  followLists,
  openDatabase,
  openObservability,
  showMetrics,
  TaskService,
  warnOfPostures,
} from '#composition';
import { configOf, type ParleyConfig } from '#config';
import { FilterNames } from '#dispatcher';
import { openTaskQueue, type TaskQueue } from '#jobs';
import { type ClassDeclaration, readEnvironmentGates } from '#policy';
import { McpEdge } from '#streaming';
import { configurationOf, type ParleyModuleOptions } from './parley-options.js';
import type { BoundSeams } from './seams.js';

/** One running instance, before the application shows it to anybody. */
export interface OpenParley {
  readonly context: INestApplicationContext;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Once the application's tools are registered. @throws ConfigError */
  begin(): Promise<void>;
  /** Takes nothing more, and lets what runs come to its end. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

interface Opening {
  readonly name: string;
  readonly declared: readonly ClassDeclaration[];
  readonly seams: BoundSeams;
}

type Closing = () => Promise<void> | undefined;

const openedState = ({ redis }: ParleyConfig): Promise<SharedState> =>
  openSharedState({ ...redis, log: new Logger('SharedState') });

const openedQueue = ({ redis, tasks }: ParleyConfig): Promise<TaskQueue> =>
  openTaskQueue({
    ...redis,
    concurrency: tasks.concurrency,
    lockDuration: tasks.heartbeat * 2000,
    log: new Logger('Tasks'),
  });

/** @throws ConfigError listing every fault of the options */
export async function openParley(
  options: ParleyModuleOptions,
  { name, declared, seams }: Opening,
): Promise<OpenParley> {
  const { configuration, filters, faults } = configurationOf(options, { name, admits: seams.admits });
  const { environment = process.env } = options;
  const loaded = configOf(configuration, { declared, filters, environment, found: faults });
  const { config } = loaded;
  const ends: Closing[] = [];
  const close = async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  };
  try {
    const log = new Logger('Parley');
    const observed = await openObservability(config, environment, new Logger('Telemetry'));
    ends.push(() => observed.tracing?.close());
    const database = await openDatabase(config.database);
    ends.push(() => database.close());
    const shared = seams.sharedState ?? (await openedState(config));
    if (!seams.sharedState) ends.push(() => shared.close());
    const queue = seams.taskQueue ?? (await openedQueue(config));
    if (!seams.taskQueue) ends.push(() => queue.close());
    const context = await NestFactory.createApplicationContext(
      AppModule.compose({
        loaded,
        connection: database.connection,
        shared: seams.stateOver(shared),
        queue,
        observed,
        gates: options.gates ?? readEnvironmentGates(environment),
        replaced: seams.providers(loaded.config),
        // The application's tools are registered when all of its modules are there.
        holdsTasks: true,
      }),
      // The application's logger speaks for it, and the application decides what a failed start means.
      { abortOnError: false },
    );
    ends.push(() => context.close());
    return {
      context,
      environment,
      begin: async () => {
        warnOfPostures(loaded, log);
        await checkFilterNames(loaded, context.get(FilterNames), log);
        followLists(context);
        context.get(TaskService).begin();
        ends.push(await showMetrics(context, observed, config, log));
      },
      drain: async () => {
        const grace = config.server.drainTimeout * 1000;
        await Promise.all([context.get(McpEdge).close(grace), context.get(TaskService).drain(grace)]);
      },
      close,
    };
  } catch (error) {
    // Left open, it would keep the process alive.
    await close();
    throw error;
  }
}
