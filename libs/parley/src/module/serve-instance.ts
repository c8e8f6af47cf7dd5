import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type INestApplicationContext, Logger } from '@nestjs/common';
import { type Mounted, type HttpRoute, HttpRoutes, routesOf, resourceUrlOf } from '#instance';
import type { ParleyConfig } from '#config';
import { McpEdge, ServedAt } from '#streaming';
import { DEFAULT_ENDPOINTS, type ParleyEndpoints } from './parley-options.js';
import { Mountings } from './mountings.js';

export interface ServedInstance {
  readonly name: string;
  readonly context: INestApplicationContext;
  readonly config: ParleyConfig;
  /** What the application puts before the path of MCP; one at least. */
  readonly bases: readonly string[];
  readonly endpoints: ParleyEndpoints | undefined;
}

/** Hands requests on as if the instance stood at the root. */
function below(base: string, mounted: Pick<Mounted, 'handle'>) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    request.url = (request.url ?? '').slice(base.length);
    void mounted.handle(request, response);
  };
}

/**
 * Mounts an instance at every path it has. What lies beside MCP in the service lies below its path here, where no other
 * instance and no route of the application can be.
 * @throws TypeError when another instance has one of the paths
 */
export function serveInstance(
  server: Server,
  { name, context, config, bases, endpoints }: ServedInstance,
): Mountings {
  const on = { ...DEFAULT_ENDPOINTS, ...definedOf(endpoints) };
  const { path } = config.server;
  const mcpAt = bases.map((base) => `${base}${path}`);
  const mountings = Mountings.of(server);
  mountings.name(name);
  const edge = context.get(McpEdge);
  const routes = routesOf(context);
  const besides: HttpRoute[] = [
    ...(on.tools ? [routes.tools] : []),
    ...(on.approvals ? [routes.approvals] : []),
    ...(on.health ? [routes.health, routes.ready] : []),
  ];
  const neighbours = new HttpRoutes(besides, edge.unread);
  for (const base of bases) {
    const endpoint = `${base}${path}`;
    mountings.mount(endpoint, below(base, edge), { deep: true });
    for (const route of besides)
      mountings.mount(`${endpoint}${route.path}`, below(endpoint, neighbours), { deep: true });
    if (on.exports) mountings.mount(`${endpoint}/exports`, below(endpoint, edge), { deep: true });
  }
  const [first = path] = mcpAt;
  context.get(ServedAt).settle({ endpoints: mcpAt, downloads: on.exports ? `${first}/exports` : null });
  const resource = resourceUrlOf(config);
  if (on.documents && resource !== null)
    mountDocuments(mountings, routes, { resource, mcpAt, unread: edge.unread });
  return mountings;
}

const definedOf = (given: ParleyEndpoints = {}): ParleyEndpoints =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));

/** At the root of the host, between it and the path, as RFC 9728 says: whatever prefix the application has. */
function mountDocuments(
  mountings: Mountings,
  { protectedResource, authorizationServer }: ReturnType<typeof routesOf>,
  {
    resource,
    mcpAt,
    unread,
  }: {
    readonly resource: string;
    readonly mcpAt: readonly string[];
    readonly unread: McpEdge['unread'];
  },
): void {
  const known = new URL(resource).pathname.replace(/\/$/, '');
  if (!mcpAt.includes(known))
    new Logger('Parley').warn(
      `access tokens are meant for ${resource}, and MCP is served at ${mcpAt.join(', ')}: unless a proxy stands between, ` +
        'clients do not take one for the other (server.publicUrl)',
    );
  const documents = new HttpRoutes([protectedResource, authorizationServer], unread);
  const serve = below('', documents);
  for (const place of new Set([known, ...mcpAt])) {
    mountings.mount(`${protectedResource.path}${place}`, serve, { deep: false });
    // The place without a path is that of an authorization server that the application may be itself.
    if (place !== '') mountings.mount(`${authorizationServer.path}${place}`, serve, { deep: false });
  }
}
