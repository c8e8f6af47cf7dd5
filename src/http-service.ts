import 'reflect-metadata';
import { Logger, type Provider } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import type { Server } from 'node:http';
import { LogMessage } from '#audit';
import type { MongoConnection } from '#data-mongo';
import { CONSOLE_PATH, McpEdge, ROUTE_PATHS } from '#streaming';
import {
  type LoadedService,
  mountEdges,
  openConsole,
  ParleyInstance,
  type ReadableAgain,
} from '#parley/instance';
import { type Environment, toListeningError, type LoadedConfig } from '#config';
import { openLogger, type ServiceLogger } from './logging/service-logger.js';
import { START_PAGE, StartPageModule } from './start-page.js';
import type { RunningService } from './running-service.js';

type LoadedHttp = LoadedConfig & Partial<Pick<LoadedService, 'plugins'>> & ReadableAgain;

/**
 * @param features the application's own `@Tool` and `@ParseClass` providers
 * @throws ConfigError when the address cannot be listened on
 */
export async function startHttpService(
  loaded: LoadedHttp,
  connection: MongoConnection | null,
  env: Environment,
  features: readonly Provider[] = [],
): Promise<RunningService> {
  const { config, plugins = [] } = loaded;
  const logger = await openLogger({ config, level: 'info' });
  Logger.overrideLogger(logger);
  const instance = await ParleyInstance.open(
    {
      loaded: hideSecrets(loaded, logger),
      environment: env,
      connection,
      features,
      plugins,
      onObserved: ({ tracing }) => logger.nameTraces(tracing),
      console: openConsole,
    },
    async (module) =>
      NestFactory.create<NestExpressApplication>(module, new ExpressAdapter(), {
        logger,
        forceCloseConnections: true,
        // The edge reads bodies itself, and no other route accepts one.
        bodyParser: false,
      }),
  );
  try {
    return await serveOverHttp(instance, loaded);
  } catch (error) {
    // An open instance would keep the process alive.
    await instance.abandon();
    throw error;
  }
}

/** The log learns the secrets of every file that is read, refused ones included: who wrote it may use its keys already. */
function hideSecrets(loaded: LoadedHttp, logger: ServiceLogger): LoadedHttp {
  const { reread } = loaded;
  if (!reread) return loaded;
  const readHidden = () => {
    const read = reread((held) => logger.hideSecretsOf(held));
    // The environment has some that no file holds.
    logger.hideSecretsOf(read.config);
    return read;
  };
  return { ...loaded, reread: readHidden };
}

async function serveOverHttp(
  instance: ParleyInstance<NestExpressApplication>,
  loaded: LoadedHttp,
): Promise<RunningService> {
  const { app } = instance;
  app.disable('x-powered-by');
  const server = app.getHttpServer() as Server;
  // Longer than the idle time of the usual load balancers (60 s): the sending side must close the connection.
  server.keepAliveTimeout = 75_000;
  server.maxConnections = loaded.config.server.maxConnections;
  // Node drops headers beyond this number, and keeps 16 KiB of headers in any case.
  server.maxHeadersCount = 0;
  // A slower sender only occupies a connection.
  server.headersTimeout = 15_000;
  server.requestTimeout = 60_000;
  await instance.begin();
  const edge = app.get(McpEdge);
  const { healthPath, startPage } = loaded.config.server;
  const routes = await instance.openRoutes(startPage ? [StartPageModule.register(app)] : []);
  const mounted = [
    edge,
    // First: it may lie below another route, which would claim it.
    ...(healthPath === null ? [] : [routes.at(ROUTE_PATHS.health, healthPath)]),
    routes,
    ...(startPage ? [routes.at(START_PAGE)] : []),
    ...(instance.hasConsole ? [routes.below(CONSOLE_PATH)] : []),
  ];
  mountEdges(server, mounted, edge.unread);
  await listen(app, loaded.config.server);
  const configuration = instance.follow();
  const url = endpointUrl(loaded, server);
  instance.reportStart(url);
  return {
    url,
    reload: () => configuration.reload(),
    close: async () => {
      const began = performance.now();
      await instance.drain();
      await instance.close();
      const ms = Math.round(performance.now() - began);
      new Logger('Parley').log(new LogMessage('ended', { ms, uptime_s: Math.round(process.uptime()) }));
    },
  };
}

async function listen(
  app: NestExpressApplication,
  { host, port }: LoadedConfig['config']['server'],
): Promise<void> {
  try {
    await app.listen(port, host);
  } catch (error) {
    throw toListeningError('server.port', { host, port }, error);
  }
}

function endpointUrl(loaded: LoadedConfig, server: Server): string {
  const { host, path } = loaded.config.server;
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : loaded.config.server.port;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`;
}
