import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import type { Mounted, ParleyInstance, RoutesApplication } from '../instance/index.js';
import { resourceUrlOf } from '#auth';
import { ServedAt } from '#core';
import { consoleBase, type ParleyConfig, listPlaces } from '#config';
import { CONSOLE_PATH, McpEdge, mountAt, ROUTE_PATHS } from '#streaming';
import { DEFAULT_ENDPOINTS, type ParleyEndpoints } from './parley-options.js';
import { startInside } from './inner-start.js';
import { Mountings } from './mountings.js';

export interface ServedInstance {
  readonly name: string;
  readonly instance: ParleyInstance;
  readonly config: ParleyConfig;
  /** The prefixes of the MCP path in the application; at least one. */
  readonly bases: readonly string[];
  readonly endpoints: ParleyEndpoints | undefined;
}

/** Passes requests on as if the instance were mounted at the root. */
function below(base: string, mounted: Pick<Mounted, 'handle'>) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    request.url = (request.url ?? '').slice(base.length);
    void mounted.handle(request, response);
  };
}

/** The same for the console, whose addresses and cookies begin with the path at which it is mounted. */
function mountConsole(mountings: Mountings, base: string, routes: RoutesApplication): void {
  const console = routes.below(CONSOLE_PATH);
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    mountAt(request, base);
    void console.handle(request, response);
  };
  mountings.mount(`${base}${CONSOLE_PATH}`, serve, { deep: true });
}

/**
 * Mounts an instance at each of its paths. The service's routes beside MCP are below the MCP path here, where they
 * cannot collide with other instances or routes of the application.
 * @throws TypeError when another instance has one of the paths, or keeps what a console would show
 */
export async function serveInstance(
  server: Server,
  { name, instance, config, bases, endpoints }: ServedInstance,
): Promise<Mountings> {
  const on = { ...DEFAULT_ENDPOINTS, ...keepDefined(endpoints) };
  const { path } = config.server;
  const mcpAt = bases.map((base) => `${base}${path}`);
  const mountings = Mountings.of(server);
  mountings.name(name);
  mountings.store(name, listStores(config), instance.hasConsole);
  const edge = instance.app.get(McpEdge);
  const routes = await startInside(() => instance.openRoutes());
  const besides = [
    ...(on.tools ? [ROUTE_PATHS.tools] : []),
    ...(on.approvals ? [ROUTE_PATHS.approvals] : []),
    ...(on.health ? [ROUTE_PATHS.health, ROUTE_PATHS.ready] : []),
    ...(on.exports ? [ROUTE_PATHS.exports] : []),
  ];
  for (const endpoint of mcpAt) {
    const base = endpoint.slice(0, endpoint.length - path.length);
    mountings.mount(endpoint, below(base, edge), { deep: true });
    for (const route of besides)
      mountings.mount(`${endpoint}${route}`, below(endpoint, routes), { deep: true });
    if (instance.hasConsole) mountConsole(mountings, consoleBase(endpoint), routes);
  }
  if (instance.hasConsole) warnOfAddress(config, mcpAt);
  const [first = path] = mcpAt;
  instance.app
    .get(ServedAt)
    .settle({ endpoints: mcpAt, downloads: on.exports ? `${first}${ROUTE_PATHS.exports}` : null });
  const resource = resourceUrlOf(config);
  if (on.documents && resource !== null) mountDocuments(mountings, routes, { resource, mcpAt });
  return mountings;
}

/** Where an instance keeps what a console shows, by keys that two spellings of one place have in common. */
function listStores({ audit, database, redis }: ParleyConfig): ReadonlyMap<string, string> {
  const stores = new Map<string, string>();
  for (const sink of audit.sinks) {
    if (sink.kind === 'webhook') continue;
    const label = sink.kind === 'file' ? sink.path : `${sink.database}.${sink.collection}`;
    for (const place of listPlaces(sink, database.uri)) stores.set(place, `audit.sinks: ${label}`);
  }
  const { url, sentinels, name, cluster, prefix } = redis;
  if (url !== null || sentinels !== null || cluster !== null) {
    const key = JSON.stringify([url && redisDatabase(new URL(url)), sentinels, name, cluster, prefix]);
    stores.set(`redis ${key}`, `redis.prefix: ${prefix}`);
  }
  return stores;
}

/** The server and the database of it, without a user. */
const redisDatabase = ({ hostname, port, pathname }: URL): string =>
  `${hostname.toLowerCase()}:${port || '6379'}/${pathname.slice(1) || '0'}`;

/** The issuer leads operators back to one address: the console must be there. */
function warnOfAddress({ console: { oidc } }: ParleyConfig, mcpAt: readonly string[]): void {
  if (!oidc) return;
  const consoles = mcpAt.map((path) => `${consoleBase(path)}${CONSOLE_PATH}`);
  const { pathname } = new URL(oidc.redirectUri);
  if (consoles.some((path) => pathname.startsWith(`${path}/`))) return;
  new Logger('Parley').warn(
    `the issuer leads operators back to ${oidc.redirectUri}, and the console is served at ${consoles.join(', ')} ` +
      '(console.oidc.redirectUri)',
  );
}

const keepDefined = (given: ParleyEndpoints = {}): ParleyEndpoints =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));

/** At the host root, with the path as a suffix, as RFC 9728 requires, independent of the application's prefix. */
function mountDocuments(
  mountings: Mountings,
  routes: RoutesApplication,
  { resource, mcpAt }: { readonly resource: string; readonly mcpAt: readonly string[] },
): void {
  const known = new URL(resource).pathname.replace(/\/$/, '');
  if (!mcpAt.includes(known))
    new Logger('Parley').warn(
      `access tokens are meant for ${resource}, and MCP is served at ${mcpAt.join(', ')}: unless a proxy stands between, ` +
        'clients do not take one for the other (server.publicUrl)',
    );
  const serve = below('', routes);
  for (const place of new Set([known, ...mcpAt])) {
    mountings.mount(`${ROUTE_PATHS.protectedResource}${place}`, serve, { deep: false });
    // The document without a path belongs to an authorization server, which the application may be.
    if (place !== '') mountings.mount(`${ROUTE_PATHS.authorizationServer}${place}`, serve, { deep: false });
  }
}
