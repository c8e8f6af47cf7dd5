import { Logger } from '@nestjs/common';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { type Agent, Unauthorized } from '#core';
import {
  AuthenticationUnavailable,
  type Authenticator,
  type CredentialSource,
  InsufficientScope,
} from '#auth';
import { SharedStateUnavailable } from '#state';
import { type McpEdge, NotServed, notServed, trustedHeaders, type UnreadAnswers } from '#streaming';

/** A route beside MCP, on plain Node requests: the same behind any framework. */
export interface HttpRoute {
  /** `/approvals`; the route also owns all paths below it. */
  readonly path: string;
  /**
   * Answers one request. An exception is an internal error.
   * @param below the part after `path`, without a query: empty, or starting with a slash
   */
  answer(request: IncomingMessage, response: ServerResponse, below: string): Promise<void>;
}

type Headers = Readonly<Record<string, string>>;

/** Node sends no body in an answer to HEAD. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Headers = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

export function notFound(response: ServerResponse): void {
  sendJson(response, 404, { error: 'Not Found' });
}

export const isReading = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD';

/** @param verbs the allowed methods of the path */
export function wrongVerb(response: ServerResponse, verbs: string): void {
  sendJson(response, 405, { error: 'Method Not Allowed' }, { Allow: verbs });
}

const pathOf = (url: string) => url.split('?', 1)[0] ?? '';

/** Routes beside MCP, each at its path. */
export class HttpRoutes implements Mounted {
  private readonly logger = new Logger('Neighbours');

  constructor(
    private readonly routes: readonly HttpRoute[],
    private readonly unread: Pick<UnreadAnswers, 'admit' | 'wrote'>,
  ) {}

  claims(url: string): boolean {
    return this.routeOf(pathOf(url)) !== undefined;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!(await this.unread.admit(request, response))) return;
    const path = pathOf(request.url ?? '');
    const route = this.routeOf(path);
    try {
      const below = path.slice(route?.path.length).replace(/\/$/, '');
      await route?.answer(request, response, below);
    } catch (error) {
      this.logger.error(`${route?.path} failed: ${String(error)}`);
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: 'Internal error' });
    }
    this.unread.wrote(response);
  }

  private routeOf(path: string): HttpRoute | undefined {
    return this.routes.find((route) => path === route.path || path.startsWith(`${route.path}/`));
  }
}

/** A handler that receives some paths before the framework. */
export interface Mounted {
  /** Whether it handles a request target, even if only with 404. */
  claims(url: string): boolean;
  /** Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/**
 * Passes each handler its paths before the framework sees the request. All other requests go through Nest as usual,
 * with the same read timeout.
 */
export function mountEdges(
  server: Server,
  edges: readonly Mounted[],
  unread: Pick<UnreadAnswers, 'admit' | 'wrote'>,
): void {
  const others = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const edge = edges.find((one) => one.claims(request.url ?? ''));
    if (edge) {
      void edge.handle(request, response);
      return;
    }
    void unread.admit(request, response).then((isAdmitted) => {
      if (!isAdmitted) return;
      for (const listener of others) listener.call(server, request, response as never);
      response.once('prefinish', () => unread.wrote(response));
    });
  });
}

/** Sends the reason of a refusal. */
export function tellRefused(response: ServerResponse, { status, message, headers }: NotServed): void {
  sendJson(response, status, { error: message }, headers);
}

const challenging = (challenge: string | undefined): Record<string, string> =>
  challenge === undefined ? {} : { 'WWW-Authenticate': challenge };

const insufficientScope = (authenticator: Authenticator, scopes: readonly string[]) =>
  new NotServed(403, 'Insufficient scope', challenging(authenticator.scopeChallenge(scopes)));

/** Why a caller is refused who would get a sufficient agent with more scopes; null where no scopes help. */
export function scopesLacking(
  authenticator: Authenticator,
  agent: Agent,
  suffices: (shape: Agent['shape']) => boolean,
): NotServed | null {
  const step = authenticator.stepsAbove(agent).find(({ shape }) => suffices(shape));
  return step ? insufficientScope(authenticator, step.scopes) : null;
}

function refusedCredentials(
  error: unknown,
  authenticator: Authenticator,
  headers: CredentialSource['headers'],
): NotServed | null {
  if (error instanceof InsufficientScope) return insufficientScope(authenticator, error.scopes);
  if (error instanceof AuthenticationUnavailable)
    return new NotServed(503, 'authentication unavailable', { 'Retry-After': '5' });
  if (error instanceof SharedStateUnavailable) return notServed(503, { 'Retry-After': '5' });
  if (!(error instanceof Unauthorized)) return null;
  const message = 'Unauthorized: invalid or missing API key';
  return new NotServed(401, message, challenging(authenticator.challengeTo({ headers })));
}

/**
 * Authenticates the caller of a route beside MCP, after the same checks that precede authentication of MCP.
 * @throws NotServed
 */
export async function callerOf(
  request: IncomingMessage,
  response: ServerResponse,
  { edge, authenticator }: { readonly edge: McpEdge; readonly authenticator: Authenticator },
): Promise<Agent> {
  const refused = await edge.refusalFor(request, response);
  if (refused) throw refused;
  try {
    const agent = await authenticator.authenticate({
      headers: trustedHeaders(request),
      remoteAddress: request.socket.remoteAddress,
      method: request.method ?? '',
    });
    edge.unread.own(response, agent.principal);
    const wait = await edge.spendRequest(agent.principal);
    if (wait !== null) throw notServed(429, { 'Retry-After': String(wait) });
    return agent;
  } catch (error) {
    throw refusedCredentials(error, authenticator, trustedHeaders(request)) ?? error;
  }
}
