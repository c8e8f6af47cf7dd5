import type { IncomingMessage, ServerResponse } from 'node:http';
import { SharedStateUnavailable } from '#state';
import { type McpEdge, NotServed, trustedHeaders, UnusableBody } from '#streaming';
import type { OperatorGate } from './operator-gate.js';
import type { PageFile, PageFiles } from './page-files.js';
import { type Answer, type Route, type RouteAnswer, RouteTable } from './route.js';
import { crossSiteRefusal } from './same-site.js';
import type { SignIn } from './sign-in.js';

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  // Text of a row must not become script even by a mistake of the page, which never makes markup from text.
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** Sent with every response of the console. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=()',
});

export interface ConsoleAppDependencies {
  /** The checks of the MCP endpoint before authentication apply here as well: host, rate limit, origin. */
  readonly edge: Pick<McpEdge, 'refusalFor' | 'unread'>;
  readonly gate: OperatorGate;
  readonly signIn: SignIn;
  readonly page: PageFiles;
  readonly routes: readonly Route[];
  readonly log: { error(line: string): void };
}

const ASSET = /^\/console\/assets\/([A-Za-z0-9_-]+)\/([a-z0-9.-]+)$/;
const KEPT = 'public, max-age=31536000, immutable';

/**
 * Serves the operator console on plain Node.js requests. Order of checks: page file, host and limit, site, operator,
 * route.
 */
export class ConsoleApp {
  private readonly table: RouteTable;

  constructor(private readonly dependencies: ConsoleAppDependencies) {
    const { signIn } = dependencies;
    this.table = new RouteTable([
      ...dependencies.routes,
      {
        verb: 'GET',
        path: '/console/session',
        answer: ({ request, operator }) => signIn.renew(request, operator),
      },
    ]);
  }

  /** Answers one request whose path is `/console` or below. Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!(await this.dependencies.edge.unread.admit(request, response))) return;
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    response.setHeader('Cache-Control', 'no-store');
    try {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://console');
      if (await this.sendPage(pathname, request, response)) return;
      const answer = await this.answer(pathname, searchParams, request, response);
      if (answer !== 'taken') send(response, answer);
    } catch (error) {
      this.refuse(response, error);
    }
    this.dependencies.edge.unread.wrote(response);
  }

  /** The page holds the sign-in form and no data, so it needs no authentication. */
  private async sendPage(path: string, request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const { page } = this.dependencies;
    const reads = request.method === 'GET' || request.method === 'HEAD';
    if (reads && (path === '/console' || path === '/console/')) {
      await this.pass(request, response);
      sendFile(request, response, await page.html());
      return true;
    }
    const [, version, name] = ASSET.exec(path) ?? [];
    if (!reads || version === undefined || name === undefined) return false;
    const file = await page.asset(version, name);
    if (!file) throw new NotServed(404, 'Not Found');
    response.setHeader('Cache-Control', KEPT);
    sendFile(request, response, file);
    return true;
  }

  private async answer(
    path: string,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<RouteAnswer> {
    const verb = request.method ?? '';
    await this.pass(request, response);
    const refusal = crossSiteRefusal(trustedHeaders(request), verb);
    if (refusal !== null) throw new NotServed(403, refusal);
    if (path === '/console/session' && verb === 'POST') return this.dependencies.signIn.begin(request);
    if (path === '/console/session' && verb === 'DELETE') return this.dependencies.signIn.end(request);
    const operator = await this.dependencies.gate.admit(request);
    this.dependencies.edge.unread.own(response, operator.agent.principal);
    const found = this.table.find(verb, path);
    if (!found) throw new NotServed(404, 'Not Found');
    if (!('route' in found))
      throw new NotServed(405, 'Method Not Allowed', { Allow: found.verbs.join(', ') });
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    return found.route.answer({
      operator,
      segments: found.segments,
      query,
      request,
      response,
      signal: gone.signal,
    });
  }

  private async pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refused = await this.dependencies.edge.refusalFor(request, response);
    if (refused) throw refused;
  }

  private refuse(response: ServerResponse, error: unknown): void {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const answer = answerOf(error);
    if (!answer) this.dependencies.log.error(`a console request failed: ${String(error)}`);
    send(response, answer ?? { status: 500, body: { error: 'Internal error' } });
  }
}

/** The response to an error; undefined for an internal error. */
function answerOf(error: unknown): Answer | undefined {
  if (error instanceof NotServed)
    return { status: error.status, body: { error: error.message }, headers: error.headers };
  if (error instanceof UnusableBody) return { status: error.status, body: { error: error.message } };
  if (error instanceof SharedStateUnavailable)
    return {
      status: 503,
      body: { error: 'shared state cannot be reached at the moment' },
      headers: { 'Retry-After': '5' },
    };
  return undefined;
}

function send(response: ServerResponse, { status = 200, body, headers = {} }: Answer): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': bytes.length,
    'Cache-Control': 'no-store',
    ...headers,
  });
  response.end(bytes);
}

function sendFile(request: IncomingMessage, response: ServerResponse, file: PageFile): void {
  const takesBrotli = /\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''));
  const bytes = takesBrotli ? file.brotli : file.plain;
  response.writeHead(200, {
    'Content-Type': file.type,
    'Content-Length': bytes.length,
    Vary: 'Accept-Encoding',
    ...(takesBrotli && { 'Content-Encoding': 'br' }),
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}
