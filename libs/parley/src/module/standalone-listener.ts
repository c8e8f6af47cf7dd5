import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import type { INestApplicationContext } from '@nestjs/common';
import { mountEdges, RoutesApplication } from '../instance/index.js';
import { ConfigError, toListeningError, type ParleyConfig, startErrors } from '#config';
import { assertOptions, isTruthy } from '#policy';
import { McpEdge } from '#streaming';
import { startInside } from './inner-start.js';

/** A separate port for an instance inside an application. */
export interface StandaloneOptions {
  /** Confirms in code that a port is to be opened. */
  readonly standalone: true;
  /** Default 3001; 0: a free one. */
  readonly port?: number;
  /** Default `127.0.0.1`. Any address except loopback needs `auth` without anonymous rules. */
  readonly host?: string;
}

/** An open port. */
export interface StandaloneListener {
  /** The URL of the MCP endpoint. */
  readonly url: string;
  /** Accepts no further connection and closes idle ones. The instance keeps running. */
  close(): Promise<void>;
}

const SWITCH = 'PARSE_MCP_ENABLED';

/**
 * Serves an instance at the root of a separate port, with `/health`, `/ready` and `/tools` beside it, like the service.
 * @throws ConfigError without `standalone: true` and `PARSE_MCP_ENABLED=true`, and where the address needs credentials
 */
export async function openListener(
  context: INestApplicationContext,
  config: ParleyConfig,
  environment: Readonly<Record<string, string | undefined>>,
  options: StandaloneOptions,
): Promise<StandaloneListener> {
  assertOptions('listen', options, { standalone: true, port: true, host: true });
  const { standalone, port = 3001, host = '127.0.0.1' } = options;
  if ((standalone as unknown) !== true)
    throw new ConfigError('listen', [
      { path: 'standalone', message: 'must be true for a port to be opened' },
    ]);
  const { [SWITCH]: enabled = '' } = environment;
  if (!isTruthy(enabled))
    throw new ConfigError('environment', [{ path: SWITCH, message: 'must be true for a port to be opened' }]);
  const errors = startErrors({ ...config, server: { ...config.server, host } }, environment, 'http');
  if (errors.length > 0) throw new ConfigError('listen', errors);
  const server = createServer((_request, response) => {
    response.writeHead(404, { 'Content-Type': 'application/json' }).end('{"error":"Not Found"}');
  });
  server.keepAliveTimeout = 75_000;
  server.maxHeadersCount = 0;
  server.headersTimeout = 15_000;
  server.requestTimeout = 60_000;
  server.maxConnections = config.server.maxConnections;
  const edge = context.get(McpEdge);
  const routes = await startInside(() => RoutesApplication.open(context));
  mountEdges(server, [edge, routes], edge.unread);
  try {
    await startListening(server, port, host);
  } catch (error) {
    await routes.close();
    throw error;
  }
  const { port: opened } = server.address() as AddressInfo;
  const named = host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${named}:${opened}${config.server.path}`,
    close: async () => {
      await closeServer(server);
      await routes.close();
    },
  };
}

async function startListening(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw toListeningError('port', { host, port }, error);
  }
}

async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const ended = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  await ended;
}
