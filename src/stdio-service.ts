import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Authenticator } from '#auth';
import { type Environment, withEnvironmentFiles } from '#config';
import type { MongoConnection } from '#data-mongo';
import { Kernel } from '#dispatcher';
import { type LoadedService, ParleyInstance } from '#parley/instance';
import { StdioEdge, Wire } from '#streaming';
import { Telemetry } from '#telemetry';
import { openLogger, writeUnlessUnread } from './logging/service-logger.js';

/** The credentials of a client on a pipe, instead of request headers. */
function readCredentials(given: Environment): Record<string, string> {
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
  const { config, plugins } = loaded;
  // Many clients open a pipe for it that they do not read.
  const logger = await openLogger({ config, level: 'warn', write: writeUnlessUnread(process.stderr) });
  Logger.overrideLogger(logger);
  const instance = await ParleyInstance.open(
    {
      loaded,
      environment: env,
      connection,
      plugins,
      queue: 'process',
      onObserved: ({ tracing }) => logger.nameTraces(tracing),
    },
    (module) => NestFactory.createApplicationContext(module, { logger }),
  );
  try {
    await instance.begin();
    await converse(instance, readCredentials(env), config.server.maxBodySize);
  } finally {
    await instance.close();
  }
}

async function converse(
  { app }: ParleyInstance,
  credentials: Record<string, string>,
  maxMessageSize: number,
): Promise<void> {
  const edge = new StdioEdge(
    app.get(Kernel),
    app.get(Authenticator),
    app.get(Wire),
    app.get<Telemetry | null>(Telemetry),
    {
      credentials,
      input: process.stdin,
      output: process.stdout,
      maxMessageSize,
      log: new Logger('StdioEdge'),
    },
  );
  const stop = () => edge.stop();
  process.once('SIGTERM', stop).once('SIGINT', stop);
  try {
    await edge.run();
  } finally {
    process.off('SIGTERM', stop).off('SIGINT', stop);
  }
}
