import {
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Inject,
  Injectable,
} from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Agent, Unauthorized } from '#core';
import { AuthenticationUnavailable, Authenticator, type CredentialSource, InsufficientScope } from '#auth';
import { SharedStateUnavailable } from '#state';
import { McpEdge, NotServed, notServed, trustedHeaders } from '#streaming';

type RequestOfCaller = IncomingMessage & { caller?: Agent };

/** The agent of the caller, behind `CallerGuard`. */
export const CurrentAgent = createParamDecorator((_: unknown, context: ExecutionContext) =>
  callerOf(context),
);

/** @throws TypeError for a route without `CallerGuard` */
function callerOf(context: ExecutionContext): Agent {
  const { caller } = context.switchToHttp().getRequest<RequestOfCaller>();
  if (!caller) throw new TypeError('nobody was authenticated: the route has no CallerGuard');
  return caller;
}

const challenging = (challenge: string | undefined): Record<string, string> =>
  challenge === undefined ? {} : { 'WWW-Authenticate': challenge };

const insufficientScope = (authenticator: Authenticator, scopes: readonly string[]) =>
  new NotServed(403, 'Insufficient scope', challenging(authenticator.scopeChallenge(scopes)));

/** Why a caller is refused who would get a sufficient agent with more scopes; null where no scopes help. */
export function scopesLacking(
  authenticator: Authenticator,
  agent: Agent,
  suffices: (definition: Agent['definition']) => boolean,
): NotServed | null {
  const step = authenticator.stepsAbove(agent).find(({ definition }) => suffices(definition));
  return step ? insufficientScope(authenticator, step.scopes) : null;
}

/** Authenticates the caller of a route beside MCP, after the same checks that precede authentication of MCP. */
@Injectable()
export class CallerGuard implements CanActivate {
  constructor(
    @Inject(Authenticator) private readonly authenticator: Authenticator,
    @Inject(McpEdge) private readonly edge: McpEdge,
  ) {}

  /** @throws NotServed */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<RequestOfCaller>();
    const response = http.getResponse<ServerResponse>();
    const refused = await this.edge.refusalFor(request, response);
    if (refused) throw refused;
    const headers = trustedHeaders(request);
    try {
      request.caller = await this.admit(request, response, headers);
      return true;
    } catch (error) {
      throw this.refusalOf(error, headers) ?? error;
    }
  }

  private async admit(
    request: IncomingMessage,
    response: ServerResponse,
    headers: CredentialSource['headers'],
  ): Promise<Agent> {
    const agent = await this.authenticator.authenticate({
      headers,
      remoteAddress: request.socket.remoteAddress,
      method: request.method ?? '',
    });
    this.edge.unread.own(response, agent.principal);
    const wait = await this.edge.spendRequest(agent.principal);
    if (wait !== null) throw notServed(429, { 'Retry-After': String(wait) });
    return agent;
  }

  private refusalOf(error: unknown, headers: CredentialSource['headers']): NotServed | null {
    if (error instanceof InsufficientScope) return insufficientScope(this.authenticator, error.scopes);
    if (error instanceof AuthenticationUnavailable)
      return new NotServed(503, 'authentication unavailable', { 'Retry-After': '5' });
    if (error instanceof SharedStateUnavailable) return notServed(503, { 'Retry-After': '5' });
    if (!(error instanceof Unauthorized)) return null;
    const message = 'Unauthorized: invalid or missing API key';
    return new NotServed(401, message, challenging(this.authenticator.challengeTo({ headers })));
  }
}

/** Counts a request to a route as a call of the caller. Runs after `CallerGuard`. */
@Injectable()
export class CallerRateGuard implements CanActivate {
  /** @throws NotServed */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const { definition, principal } = callerOf(context);
    const spent = await definition.rateLimiter.check(principal);
    if (spent) throw notServed(429, { 'Retry-After': String(Math.ceil(spent.retryAfter)) });
    return true;
  }
}

/** Forbids caches to keep the answer, also when a guard after it refuses. */
@Injectable()
export class NoStoreGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    context.switchToHttp().getResponse<ServerResponse>().setHeader('Cache-Control', 'no-store');
    return true;
  }
}
