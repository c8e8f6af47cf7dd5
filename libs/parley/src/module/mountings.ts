import { RequestMethod, VERSION_NEUTRAL, VersioningType } from '@nestjs/common';
import { MODULE_PATH } from '@nestjs/common/constants.js';
import type { ApplicationConfig, HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { shortenTarget } from '#streaming';

type Serving = (request: IncomingMessage, response: ServerResponse) => void;

interface Mounting {
  readonly serve: Serving;
  /** Whether the mount includes all paths below. */
  readonly deep: boolean;
}

const OF_SERVERS = new WeakMap<Server, Mountings>();

/** The paths that the Parley instances of one application serve; all other requests go to the application. */
export class Mountings {
  private readonly names = new Set<string>();
  private readonly mounted = new Map<string, Mounting>();
  /** The places where instances keep records and state. */
  private readonly stores = new Map<string, { readonly name: string; readonly isShown: boolean }>();
  private readonly attached = new WeakSet<Server>();

  static of(server: Server): Mountings {
    const known = OF_SERVERS.get(server) ?? new Mountings();
    OF_SERVERS.set(server, known);
    known.attachTo(server);
    return known;
  }

  /** @throws TypeError when another instance has the name */
  name(name: string): void {
    if (this.names.has(name))
      throw new TypeError(`two instances of Parley in one application: instance ${name}`);
    this.names.add(name);
  }

  /**
   * @param stores where an instance keeps records and state outside of the process: a key, and how an error calls it
   * @param isShown whether operators see them in its console
   * @throws TypeError when operators of one instance would see what another keeps
   */
  store(name: string, stores: ReadonlyMap<string, string>, isShown: boolean): void {
    for (const [key, label] of stores) {
      const other = this.stores.get(key);
      if (other && (isShown || other.isShown))
        throw new TypeError(
          `two instances of Parley in one application: the console would show what both ${other.name} and ${name} keep in one place (${label})`,
        );
      this.stores.set(key, { name, isShown });
    }
  }

  /**
   * @param path without a trailing slash; the longest matching path serves a request
   * @throws TypeError when another instance has it
   */
  mount(path: string, serve: Serving, { deep }: Pick<Mounting, 'deep'>): void {
    if (this.mounted.has(path))
      throw new TypeError(`two instances of Parley in one application: path ${path}`);
    this.mounted.set(path, { serve, deep });
  }

  /** Handles requests before the framework. Further servers of the same application share the mounts. */
  attachTo(server: Server): void {
    if (this.attached.has(server)) return;
    this.attached.add(server);
    const others = server.listeners('request') as RequestListener[];
    server.removeAllListeners('request');
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      shortenTarget(request);
      const serve = this.at(request.url ?? '');
      if (serve) serve(request, response);
      else for (const listener of others) listener.call(server, request, response as never);
    });
  }

  private at(url: string): Serving | undefined {
    const query = url.indexOf('?');
    const path = query < 0 ? url : url.slice(0, query);
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const mounting = this.mounted.get(path.slice(0, end));
      if (mounting && (mounting.deep || path.length - end < 2)) return mounting.serve;
    }
    return undefined;
  }
}

/** Normalises a path to `/a/b`; empty for none. */
const segments = (path: string) =>
  path
    .split('/')
    .filter((part) => part !== '')
    .map((part) => `/${part}`)
    .join('');

function listVersions(config: ApplicationConfig, own: string | undefined): string[] {
  const versioning = config.getVersioning();
  if (versioning?.type !== VersioningType.URI) return [''];
  const prefix = versioning.prefix === false ? '' : (versioning.prefix ?? 'v');
  const given = own ?? versioning.defaultVersion;
  const versions = given === undefined ? [] : Array.isArray(given) ? given : [given];
  return versions.length === 0
    ? ['']
    : versions.map((one) => (one === VERSION_NEUTRAL ? '' : `/${prefix}${String(one)}`));
}

/** The HTTP methods of MCP. */
const VERBS = [RequestMethod.GET, RequestMethod.POST, RequestMethod.DELETE];

/** @throws TypeError when the exclusion covers some HTTP methods and not others */
function isExcluded(config: ApplicationConfig, path: string): boolean {
  const routes = config.getGlobalPrefixOptions().exclude ?? [];
  const excluded = VERBS.filter((verb) =>
    routes.some(
      ({ requestMethod, pathRegex }) =>
        [verb, RequestMethod.ALL, -1].includes(requestMethod) && pathRegex.test(path),
    ),
  );
  if (excluded.length === 0 || excluded.length === VERBS.length) return excluded.length > 0;
  throw new TypeError(
    `the global prefix excludes ${path} of Parley for some verbs and not for others: exclude GET, POST and DELETE, or none`,
  );
}

export interface MountedModule {
  readonly config: ApplicationConfig;
  readonly modules: ModulesContainer;
  readonly module: object;
  /** The version of the module, where the application has versions in its URLs. */
  readonly version: string | undefined;
}

/**
 * The prefixes of a module's paths in the application, as for its controllers; one per version.
 * @throws TypeError
 */
export function listBases({ config, modules, module, version }: MountedModule, path: string): string[] {
  const modulePath = Reflect.getMetadata(MODULE_PATH + modules.applicationId, module) as string | undefined;
  const own = segments(modulePath ?? '');
  // As in Nest, an exclusion is a path without prefix and version.
  const prefix = isExcluded(config, `${own}${path}`) ? '' : segments(config.getGlobalPrefix());
  return listVersions(config, version).map((one) => `${prefix}${one}${own}`);
}

/** The required members of Fastify; its types may not be installed. */
interface Fastify {
  addHook(name: 'onListen', hook: (done: () => void) => void): unknown;
  addresses(): readonly unknown[];
}

interface Listening {
  readonly adapter: HttpAdapterHost['httpAdapter'];
  readonly mountings: Mountings;
  readonly log: { error(line: string): void };
}

/** Fastify opens one server per address when a name has several, as `localhost` may. */
export function followFurtherServers({ adapter, mountings, log }: Listening): void {
  if (adapter.getType() !== 'fastify') return;
  const fastify = adapter.getInstance<Fastify>();
  fastify.addHook('onListen', (done) => {
    const further = listFurtherServers(fastify);
    for (const server of further) mountings.attachTo(server);
    if (fastify.addresses().length > further.length + 1)
      log.error(
        'the application listens at addresses where MCP is not served: give one address to listen on',
      );
    done();
  });
}

/** Fastify stores them under a symbol, which only its description identifies. */
function listFurtherServers(fastify: object): readonly Server[] {
  const key = Object.getOwnPropertySymbols(fastify).find(
    ({ description }) => description === 'fastify.serverBindings',
  );
  return key === undefined ? [] : (Reflect.get(fastify, key) as Server[]);
}
