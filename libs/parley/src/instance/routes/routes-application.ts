import {
  type DynamicModule,
  type INestApplication,
  type INestApplicationContext,
  Logger,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import {
  McpEdge,
  mayLackHeaders,
  NodeHttpAdapter,
  notServed,
  readPath,
  RefusalFilter,
  nameRequest,
  ROUTE_PATHS,
  sendJson,
  type UnreadAnswers,
  shortenTarget,
} from '#streaming';
import { RoutesModule } from './routes.module.js';

type Unread = Pick<UnreadAnswers, 'admit' | 'wrote'>;

/** A handler that receives some paths before the framework. */
export interface Mounted {
  /** Whether it handles a request target, even if only with 404. */
  claims(url: string): boolean;
  /** Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

const isBelow = (route: string, path: string) => path === route || path.startsWith(`${route}/`);

const findRoute = (path: string) => Object.values(ROUTE_PATHS).find((route) => isBelow(route, path));

/** What pages of listed origins may ask and read: what agents ask with a credential. Probes and the console are not. */
const isOpenToPages = (path: string) =>
  isBelow(ROUTE_PATHS.tools, path) || isBelow(ROUTE_PATHS.approvals, path);

/** Every path below it is a file; the path itself is not. */
const isFile = (path: string) => path.startsWith(`${ROUTE_PATHS.exports}/`);

/**
 * The controllers of the routes beside MCP, in a Nest application of their own that listens nowhere. Enhancers, parsers and
 * prefixes of the application around it, or of plugins, do not apply to them.
 */
export class RoutesApplication implements Mounted {
  private readonly logger = new Logger(RoutesApplication.name);

  private constructor(
    private readonly app: INestApplication,
    private readonly adapter: NodeHttpAdapter,
    private readonly edge: McpEdge,
  ) {}

  /**
   * @param instance provides the data of the routes
   * @param further modules with further controllers
   */
  static async open(
    instance: INestApplicationContext,
    further: readonly DynamicModule[] = [],
  ): Promise<RoutesApplication> {
    const adapter = new NodeHttpAdapter();
    const app = await NestFactory.create(RoutesModule.register(instance, further), adapter, {
      abortOnError: false,
      bodyParser: false,
    });
    const logger = new Logger('Neighbours');
    app.useGlobalFilters(
      new RefusalFilter((error, url) => logger.error(`${findRoute(readPath(url))} failed: ${String(error)}`)),
    );
    await app.init();
    return new RoutesApplication(app, adapter, instance.get(McpEdge));
  }

  claims(url: string): boolean {
    const path = readPath(url);
    return path !== ROUTE_PATHS.exports && findRoute(path) !== undefined;
  }

  /** One trailing slash is ignored. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.serve(request, response, readPath(request.url ?? '').replace(/\/$/, ''));
  }

  /** The routes of `further` modules at this path and below. A trailing slash is ignored at the path itself only. */
  below(route: string): Mounted {
    return {
      claims: (url) => isBelow(route, readPath(url)),
      handle: (request, response) => {
        const path = readPath(request.url ?? '');
        return this.serve(request, response, path === `${route}/` ? route : path);
      },
    };
  }

  /** A route at exactly this path. @param path where it is served */
  at(route: string, path = route): Mounted {
    return {
      claims: (url) => readPath(url) === path,
      handle: (request, response) => this.serve(request, response, route.replace(/\/$/, '')),
    };
  }

  /** Runs the shutdown hooks of its modules. */
  close(): Promise<void> {
    return this.app.close();
  }

  private async serve(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { edge, adapter } = this;
    const { unread } = edge;
    nameRequest(request, response);
    try {
      if (isOpenToPages(path)) {
        const route = { route: findRoute(path) ?? path, methods: adapter.listMethods(path) };
        if (await edge.openRoute(request, response, route)) return;
      }
      // Before any route: each of them decides by headers that are there, or are not.
      if (mayLackHeaders(request)) {
        const { status, message } = notServed(431);
        return sendJson(response, status, { error: message });
      }
      // The edge admits files itself, once it knows the caller.
      const isAdmitted = isFile(path) || (await unread.admit(request, response));
      if (!isAdmitted) return;
      await adapter.handle(request, response, path);
      unread.wrote(response);
    } catch (error) {
      // Nobody waits for this promise: its rejection would end the process.
      this.logger.error(`a request failed outside of its controller: ${String(error)}`);
      response.destroy();
    }
  }
}

/**
 * Passes each handler its paths before the framework sees the request. All other requests go through Nest as usual,
 * with the same read timeout.
 */
export function mountEdges(server: Server, edges: readonly Mounted[], unread: Unread): void {
  const others = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    shortenTarget(request);
    const edge = edges.find((one) => one.claims(request.url ?? ''));
    if (edge) {
      void edge.handle(request, response);
      return;
    }
    nameRequest(request, response);
    void unread.admit(request, response).then((isAdmitted) => {
      if (!isAdmitted) return;
      for (const listener of others) listener.call(server, request, response as never);
      response.once('prefinish', () => unread.wrote(response));
    });
  });
}
