import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Authenticator } from '#auth';
import { openSharedState } from '#cluster';
import type { MongoConnection } from '#data-mongo';
import { FilterNames, Kernel } from '#dispatcher';
import { readEnvironmentGates } from '#policy';
import { StdioEdge, Wire } from '#streaming';
import { Telemetry } from '#telemetry';
import {
  AppModule,
  type ServiceParts,
  checkFilterNames,
  type LoadedService,
  warnOfPostures,
  fieldsOf,
  NOTHING_OBSERVED,
  type Observability,
  openObservability,
  showMetrics,
  followLists,
} from '#composition';
import { withEnvironmentFiles, type Environment } from '#config';
import { openLogger } from './logging/open-logger.js';
import type { ServiceLogger } from './logging/service-logger.js';

/** What a client on a pipe shows instead of request headers. */
function credentialsOf(given: Environment): Record<string, string> {
  const env = withEnvironmentFiles(given);
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
  const { config } = loaded;
  let observed: Observability = NOTHING_OBSERVED;
  const stderr = await openLogger({ config, level: 'warn', fields: () => fieldsOf(observed) });
  Logger.overrideLogger(stderr);
  observed = await openObservability(config, env, new Logger('Telemetry'));
  const shared = await openSharedState({ ...loaded.config.redis, log: new Logger('SharedState') });
  try {
    const gates = readEnvironmentGates(env);
    const parts = { loaded, connection, shared, gates, observed, plugins: loaded.plugins };
    await converse(parts, credentialsOf(env), stderr);
  } finally {
    await shared.close();
    await observed.tracing?.close();
  }
}

async function converse(
  parts: ServiceParts & { readonly observed: Observability },
  credentials: Record<string, string>,
  logger: ServiceLogger,
): Promise<void> {
  const { loaded, observed } = parts;
  const app = await NestFactory.createApplicationContext(AppModule.compose(parts), { logger });
  const log = new Logger('Parley');
  warnOfPostures(loaded, log);
  await checkFilterNames(loaded, app.get(FilterNames), log);
  followLists(app);
  const hideMetrics = await showMetrics(app, observed, loaded.config, log);
  const edge = new StdioEdge(
    {
      kernel: app.get(Kernel),
      authenticator: app.get(Authenticator),
      wire: app.get(Wire),
      credentials,
      log: new Logger('StdioEdge'),
      telemetry: app.get<Telemetry | null>(Telemetry) ?? undefined,
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
    await hideMetrics();
    await app.close();
  }
}
