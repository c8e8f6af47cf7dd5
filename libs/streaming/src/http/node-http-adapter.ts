import { AbstractHttpAdapter } from '@nestjs/core';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type NotServed, notServed, sendJson } from './routes.js';

/** A request with what Nest's parameter decorators read. */
type RoutedRequest = IncomingMessage & {
  params?: Readonly<Record<string, string>>;
  query?: Query;
};
type Next = (error?: unknown) => void;
type Handler = (request: RoutedRequest, response: ServerResponse, next: Next) => unknown;
type ErrorHandler = (error: unknown, request: RoutedRequest, response: ServerResponse, next: Next) => unknown;

interface Route {
  /** Null: every method. */
  readonly methods: readonly string[] | null;
  readonly pattern: RegExp;
  readonly handler: Handler;
}

/** A parameter is a segment of characters that need no escape, as ids are. */
const SEGMENT = '[A-Za-z0-9._~-]+';

/** `/a/:id` and `/a/*rest` of Nest as an expression; a rest may be empty. */
function compilePattern(path: string): RegExp {
  const parts = path.split('/').filter((part) => part !== '');
  const source = parts.map((part) => {
    if (part.startsWith(':')) return `/(?<${part.slice(1)}>${SEGMENT})`;
    if (part.startsWith('*')) return `(?:/(?<${part.slice(1)}>.*))?`;
    return `/${part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`;
  });
  return new RegExp(`^${source.join('')}$`);
}

/** The routes of the controllers, in the order of their registration. */
class RouteTable {
  private readonly routes: Route[] = [];
  private readonly middleware: Route[] = [];

  readonly get = (path: string, handler: Handler) => this.add(['GET', 'HEAD'], path, handler);
  readonly post = (path: string, handler: Handler) => this.add(['POST'], path, handler);
  readonly head = (path: string, handler: Handler) => this.add(['HEAD'], path, handler);
  readonly delete = (path: string, handler: Handler) => this.add(['DELETE'], path, handler);
  readonly options = (path: string, handler: Handler) => this.add(['OPTIONS'], path, handler);
  readonly all = (path: string, handler: Handler) => this.add(null, path, handler);

  use(path: string, handler: Handler): void {
    this.middleware.push({ methods: null, pattern: compilePattern(path), handler });
  }

  before(path: string): readonly Route[] {
    return this.middleware.filter(({ pattern }) => pattern.test(path));
  }

  /** @returns undefined for a path or a method without a route */
  find(
    method: string,
    path: string,
  ): { readonly route: Route; readonly params: RegExpExecArray } | undefined {
    for (const route of this.routes) {
      const params = route.methods?.includes(method) === false ? null : route.pattern.exec(path);
      if (params) return { route, params };
    }
    return undefined;
  }

  listMethods(path: string): readonly string[] {
    const serving = this.routes.filter(({ pattern }) => pattern.test(path));
    return [...new Set(serving.flatMap(({ methods }) => methods ?? []))];
  }

  private add(methods: Route['methods'], path: string, handler: Handler): void {
    this.routes.push({ methods, pattern: compilePattern(path), handler });
  }
}

type Query = Readonly<Record<string, string | readonly string[]>>;

/** Of a repeated parameter the list of its values. */
function parseQuery(url: string): Query {
  const at = url.indexOf('?');
  if (at < 0) return {};
  const parameters = new URLSearchParams(url.slice(at + 1));
  // Also of a name such as __proto__, which is then a member like any other.
  return Object.fromEntries(
    [...new Set(parameters.keys())].map((name) => {
      const [first = '', ...others] = parameters.getAll(name);
      return [name, others.length > 0 ? [first, ...others] : first];
    }),
  );
}

const refuseUnsupported = (): never => {
  throw new TypeError('routes beside MCP have no such feature');
};

/**
 * Routes requests of a Node server to Nest's controllers. It listens nowhere, so that an instance has the same routes beside
 * Express, beside Fastify and at a port of its own, and it reads no body before a guard has run
 * (docs/contributing/decisions/0011-http-routes.md).
 */
export class NodeHttpAdapter extends AbstractHttpAdapter<object, RoutedRequest, ServerResponse> {
  private fail: ErrorHandler = (error) => {
    throw error;
  };

  constructor(private readonly table = new RouteTable()) {
    super(table);
  }

  /**
   * Answers a request. Never rejects.
   * @param path the path of a route, without a query
   */
  async handle(request: RoutedRequest, response: ServerResponse, path: string): Promise<void> {
    const method = request.method ?? '';
    const ignore = () => undefined;
    try {
      for (const { handler } of this.table.before(path)) {
        let passed = false;
        await handler(request, response, () => (passed = true));
        if (!passed) return;
      }
      const found = this.table.find(method, path);
      if (!found) throw this.findRefusal(path);
      request.params = { ...found.params.groups };
      request.query = parseQuery(request.url ?? '');
      await found.route.handler(request, response, ignore);
    } catch (error) {
      await this.answerError(error, request, response);
    }
  }

  private async answerError(error: unknown, request: RoutedRequest, response: ServerResponse): Promise<void> {
    try {
      await this.fail(error, request, response, () => undefined);
    } catch {
      // An answer that cannot be sent is dropped.
      response.destroy();
    }
  }

  /** Why no route serves a request to this path. */
  findRefusal(path: string): NotServed {
    const methods = this.listMethods(path);
    return methods.length > 0 ? notServed(405, { Allow: methods.join(', ') }) : notServed(404);
  }

  /** The methods of the routes of a path, except those for every method. */
  listMethods(path: string): readonly string[] {
    return this.table.listMethods(path);
  }

  setErrorHandler(handler: ErrorHandler): void {
    this.fail = handler;
  }

  createMiddlewareFactory(): (path: string, handler: Function) => void {
    return (path, handler) => this.table.use(path, handler as Handler);
  }

  status(response: ServerResponse, status: number): void {
    response.statusCode = status;
  }

  reply(response: ServerResponse, body: unknown, status = response.statusCode): void {
    sendJson(response, status, body);
  }

  end(response: ServerResponse, message?: string): void {
    response.end(message);
  }

  isHeadersSent(response: ServerResponse): boolean {
    return response.headersSent;
  }

  getHeader(response: ServerResponse, name: string): unknown {
    return response.getHeader(name);
  }

  setHeader(response: ServerResponse, name: string, value: string): void {
    response.setHeader(name, value);
  }

  appendHeader(response: ServerResponse, name: string, value: string): void {
    response.appendHeader(name, value);
  }

  getRequestMethod({ method }: RoutedRequest): string | undefined {
    return method;
  }

  getRequestUrl({ url }: RoutedRequest): string | undefined {
    return url;
  }

  getRequestHostname({ headers }: RoutedRequest): string | undefined {
    return headers.host;
  }

  getType(): string {
    return 'node';
  }

  /** There is no server to open or to close. */
  initHttpServer(): void {
    this.httpServer = {};
  }

  close(): void {}

  /** Unknown paths are refused by `handle`. */
  setNotFoundHandler(): void {}

  registerParserMiddleware(): never {
    return refuseUnsupported();
  }

  useStaticAssets(): never {
    return refuseUnsupported();
  }

  setViewEngine(): never {
    return refuseUnsupported();
  }

  render(): never {
    return refuseUnsupported();
  }

  redirect(): never {
    return refuseUnsupported();
  }

  enableCors(): never {
    return refuseUnsupported();
  }

  applyVersionFilter(): never {
    return refuseUnsupported();
  }
}
