import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Server } from 'node:http';
import { readEnvironmentGates } from '#policy';
import { McpEdge } from '#streaming';
import { AppModule } from './app.module.js';
import { ConfigError } from './config/config-faults.js';
import type { Environment } from './config/read-config-file.js';
import { type LoadedConfig, loadConfig } from './config/load-config.js';
import { openDatabase } from './database/open-database.js';
import { mountEdge } from './http/mount-edge.js';
import { warnOfPostures } from './posture-warnings.js';
import { assertMayStart } from './start-gate.js';
import { StderrLogger } from './stderr-logger.js';

export interface RunningService {
  readonly url: string;
  close(): Promise<void>;
}

/** Where the MCP endpoint can be reached, as printed on readiness. */
function endpointUrl(loaded: LoadedConfig, server: Server): string {
  const { host, path } = loaded.config.server;
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : loaded.config.server.port;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`;
}

/**
 * Starts the service and returns once it listens.
 * @throws ConfigError when the configuration, the seed or the environment does not permit a start
 */
export async function serve(env: Environment, cwd: string): Promise<RunningService> {
  const loaded = loadConfig(env, cwd);
  assertMayStart(loaded.config, env);
  const database = await openDatabase(loaded.config.database);
  try {
    const app = await NestFactory.create<NestExpressApplication>(
      AppModule.compose({ loaded, connection: database.connection, gates: readEnvironmentGates(env) }),
      {
        logger: new StderrLogger({ logLevels: ['warn', 'error', 'fatal'] }),
        forceCloseConnections: true,
      },
    );
    app.disable('x-powered-by');
    warnOfPostures(loaded, new Logger('Parley'));
    const server = app.getHttpServer() as Server;
    const edge = app.get(McpEdge);
    await app.init();
    mountEdge(server, edge);
    const { host, port } = loaded.config.server;
    await listen(app, port, host);
    const close = async () => {
      await edge.close();
      await app.close();
      await database.close();
    };
    closeOnSignals(close);
    const url = endpointUrl(loaded, server);
    process.stderr.write(`Parley listening on ${url}\n`);
    return { url, close };
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function listen(app: NestExpressApplication, port: number, host: string): Promise<void> {
  try {
    await app.listen(port, host);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE' && code !== 'EACCES' && code !== 'EADDRNOTAVAIL') throw error;
    throw new ConfigError('server', [{ path: 'server.port', message: `cannot listen on ${host}:${port} (${code})` }]);
  }
}

/** Requests that run are answered before the process ends. */
function closeOnSignals(close: () => Promise<void>): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      close().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
}
