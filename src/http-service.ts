import 'reflect-metadata';
import { Logger, type Provider } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Server } from 'node:http';
import { openSharedState } from '#cluster';
import type { LiveRecords } from '#console';
import type { MongoConnection } from '#data-mongo';
import { FilterNames } from '#dispatcher';
import { openTaskQueue } from '#jobs';
import { readEnvironmentGates } from '#policy';
import { McpEdge } from '#streaming';
import {
  AppModule,
  type ServiceParts,
  followConfiguration,
  type ReadableAgain,
  checkFilterNames,
  mountEdges,
  Neighbours,
  neighboursOf,
  warnOfPostures,
  type LoadedService,
  fieldsOf,
  NOTHING_OBSERVED,
  type Observability,
  openObservability,
  showMetrics,
  TaskService,
  followLists,
} from '#composition';
import { ConfigError, type LoadedConfig, type Environment } from '#config';
import { type ClosingStep, closeWithin, LAST_WORDS } from './closing.js';
import type { MountedConsole } from './console/open-console.js';
import type { RunningService } from './serve.js';
import { openLogger } from './logging/open-logger.js';
import type { ServiceLogger } from './logging/service-logger.js';

/**
 * @param features the application's own `@Tool` and `@ParseClass` providers
 * @throws ConfigError when the address cannot be listened on
 */
export async function startHttpService(
  loaded: LoadedConfig & Partial<Pick<LoadedService, 'plugins'>> & ReadableAgain,
  connection: MongoConnection | null,
  env: Environment,
  features: readonly Provider[] = [],
): Promise<RunningService> {
  const { config } = loaded;
  let observed: Observability = NOTHING_OBSERVED;
  const stderr = await openLogger({ config, level: 'info', fields: () => fieldsOf(observed) });
  Logger.overrideLogger(stderr);
  observed = await openObservability(config, env, new Logger('Telemetry'));
  const shared = await openSharedState({ ...loaded.config.redis, log: new Logger('SharedState') });
  const queue = await openTaskQueue({
    ...loaded.config.redis,
    concurrency: loaded.config.tasks.concurrency,
    lockDuration: loaded.config.tasks.heartbeat * 2000,
    log: new Logger('Tasks'),
  });
  const parts = { loaded, connection, shared, queue, observed, features, plugins: loaded.plugins ?? [] };
  try {
    return await listening({ ...parts, gates: readEnvironmentGates(env) }, env, stderr);
  } catch (error) {
    // Left open, it would keep the process alive.
    await queue.close();
    await shared.close();
    await observed.tracing?.close();
    throw error;
  }
}

async function listening(
  parts: ServiceParts & { readonly loaded: ReadableAgain; readonly observed: Observability },
  env: Environment,
  stderr: ServiceLogger,
): Promise<RunningService> {
  const { loaded, shared, observed } = parts;
  const live = await liveRecords(parts);
  const composed = AppModule.compose({ ...parts, auditListeners: live ? [live] : [] });
  const app = await NestFactory.create<NestExpressApplication>(composed, {
    logger: stderr,
    forceCloseConnections: true,
    // The edge reads bodies itself and no other route takes one.
    bodyParser: false,
  });
  app.disable('x-powered-by');
  const logger = new Logger('Parley');
  warnOfPostures(loaded, logger);
  const server = app.getHttpServer() as Server;
  // Longer than the idle time of the usual load balancers (60 s): the side that sends must be the one that closes.
  server.keepAliveTimeout = 75_000;
  server.maxConnections = loaded.config.server.maxConnections;
  // Whoever sends slower than this holds a connection for nothing.
  server.headersTimeout = 15_000;
  server.requestTimeout = 60_000;
  const edge = app.get(McpEdge);
  await app.init();
  followLists(app);
  await checkFilterNames(loaded, app.get(FilterNames), logger);
  const console = live && (await openedConsole(app, { parts, env, live }));
  const neighbours = new Neighbours(Object.values(neighboursOf(app)), edge.unread);
  mountEdges(server, [edge, neighbours, ...(console ? [console] : [])], edge.unread);
  const hideMetrics = await showMetrics(app, observed, loaded.config, logger);
  try {
    await listen(app, loaded.config.server);
  } catch (error) {
    await hideMetrics();
    throw error;
  }
  const following = followConfiguration(app, loaded);
  return {
    url: endpointUrl(loaded, server),
    reload: () => following.reload(),
    close: async () => {
      following.stop();
      const grace = loaded.config.server.drainTimeout * 1000;
      await Promise.all([console?.close(), edge.close(grace), app.get(TaskService).drain(grace)]);
      const steps: ClosingStep[] = [
        ['the application', () => app.close()],
        ['the metrics', hideMetrics],
        ['the shared state', () => shared.close()],
        ['the traces', () => observed.tracing?.close()],
      ];
      await closeWithin(LAST_WORDS, steps, logger);
    },
  };
}

/** The console is loaded only where it is served. */
async function liveRecords({ loaded, shared }: ServiceParts): Promise<LiveRecords | null> {
  if (loaded.config.console.operators === null) return null;
  const { LiveRecords: Live } = await import('#console');
  return new Live(shared.bus);
}

async function openedConsole(
  app: NestExpressApplication,
  setting: { parts: ServiceParts; env: Environment; live: LiveRecords },
): Promise<MountedConsole> {
  const { openConsole } = await import('./console/open-console.js');
  return openConsole(app, setting);
}

async function listen(
  app: NestExpressApplication,
  { host, port }: LoadedConfig['config']['server'],
): Promise<void> {
  try {
    await app.listen(port, host);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE' && code !== 'EACCES' && code !== 'EADDRNOTAVAIL') throw error;
    const instead = code === 'EADDRINUSE' ? ': something listens there already, PORT names another' : '';
    throw new ConfigError('server', [
      { path: 'server.port', message: `cannot listen on ${host}:${port} (${code})${instead}` },
    ]);
  }
}

function endpointUrl(loaded: LoadedConfig, server: Server): string {
  const { host, path } = loaded.config.server;
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : loaded.config.server.port;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`;
}
