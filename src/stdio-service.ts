import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Authenticator } from '#auth';
import { openSharedState } from '#cluster';
import type { MongoConnection } from '#data-mongo';
import { FilterNames, Kernel } from '#dispatcher';
import { readEnvironmentGates } from '#policy';
import { StdioEdge, Wire } from '#streaming';
import { AppModule, type ServiceParts } from './app.module.js';
import type { Environment } from './config/read-config-file.js';
import { checkFilterNames } from './filter-names.js';
import type { LoadedService } from './plugins/load-with-plugins.js';
import { warnOfPostures } from './posture-warnings.js';
import { StderrLogger } from './stderr-logger.js';
import { followLists } from './wire.js';

/** What a client on a pipe shows instead of request headers. */
function credentialsOf(env: Environment): Record<string, string> {
  const key = env['MCP_API_KEY'];
  const session = env['PARSE_SESSION_TOKEN'];
  return {
    ...(key ? { 'x-mcp-api-key': key } : {}),
    ...(session ? { 'x-parse-session-token': session } : {}),
  };
}

/** Serves one client on standard input and output; returns when the input has ended and every call is answered. */
export async function serveStdio(
  loaded: LoadedService,
  connection: MongoConnection | null,
  env: Environment,
): Promise<void> {
  const stderr = new StderrLogger({ logLevels: ['warn', 'error', 'fatal'] });
  Logger.overrideLogger(stderr);
  const shared = await openSharedState({ ...loaded.config.redis, log: new Logger('SharedState') });
  try {
    const gates = readEnvironmentGates(env);
    const parts = { loaded, connection, shared, gates, plugins: loaded.plugins };
    await converse(parts, credentialsOf(env), stderr);
  } finally {
    await shared.close();
  }
}

async function converse(
  parts: ServiceParts,
  credentials: Record<string, string>,
  logger: StderrLogger,
): Promise<void> {
  const { loaded } = parts;
  const app = await NestFactory.createApplicationContext(AppModule.compose(parts), { logger });
  const log = new Logger('Parley');
  warnOfPostures(loaded, log);
  await checkFilterNames(loaded, app.get(FilterNames), log);
  followLists(app);
  const edge = new StdioEdge(
    {
      kernel: app.get(Kernel),
      authenticator: app.get(Authenticator),
      wire: app.get(Wire),
      credentials,
      log: new Logger('StdioEdge'),
    },
    process.stdin,
    process.stdout,
    { maxMessageSize: loaded.config.server.maxBodySize },
  );
  const stop = () => edge.stop();
  process.once('SIGTERM', stop).once('SIGINT', stop);
  try {
    await edge.run();
  } finally {
    process.off('SIGTERM', stop).off('SIGINT', stop);
    await app.close();
  }
}
