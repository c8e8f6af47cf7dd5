import {
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Inject,
  Injectable,
  Logger,
} from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Agent, Refused, spendLimit, Unauthorized } from '#core';
import { AuthenticationUnavailable, Authenticator, type CredentialSource, InsufficientScope } from '#auth';
import { SharedStateUnavailable } from '#state';
import { readTrustedHeaders } from './http-exchange.js';
import { McpEdge } from './mcp-edge.js';
import { CALLER_WORDS, toCallerWords } from './refusals.js';
import { NotServed, notServed } from './routes.js';

/** The agents of requests that a guard authenticated. */
const callers = new WeakMap<object, Agent>();

/** Makes the agent of a request known to its route. */
export function setCaller(request: object, agent: Agent): void {
  callers.set(request, agent);
}

/** The agent of the caller, behind `ParleyGuard` and in routes of Parley behind `CallerGuard`. */
export const CurrentAgent = createParamDecorator((_: unknown, context: ExecutionContext) =>
  readCaller(context),
);

/** @throws TypeError for a route without such a guard */
function readCaller(context: ExecutionContext): Agent {
  const caller = callers.get(context.switchToHttp().getRequest<object>());
  if (!caller) throw new TypeError('nobody was authenticated: the route has no guard that does');
  return caller;
}

const toChallengeHeaders = (challenge: string | undefined): Record<string, string> =>
  challenge === undefined ? {} : { 'WWW-Authenticate': challenge };

const insufficientScope = (authenticator: Authenticator, scopes: readonly string[]) =>
  new NotServed(...CALLER_WORDS.scopeMissing, toChallengeHeaders(authenticator.scopeChallenge(scopes)));

/** Why a caller is refused who would get a sufficient agent with more scopes; null where no scopes help. */
export function scopesLacking(
  authenticator: Authenticator,
  agent: Agent,
  suffices: (definition: Agent['definition']) => boolean,
): NotServed | null {
  const step = authenticator.stepsAbove(agent).find(({ definition }) => suffices(definition));
  return step ? insufficientScope(authenticator, step.scopes) : null;
}

/** The parts of an instance that decide who is calling. */
export interface CallerChecks {
  readonly edge: McpEdge;
  readonly authenticator: Authenticator;
}

/**
 * Authenticates the caller of a request beside MCP, after the same checks that precede authentication of MCP.
 * @param alsoAdmit refuses a caller that is known. Default: none
 * @throws NotServed
 */
export async function authenticateCaller(
  { edge, authenticator }: CallerChecks,
  request: IncomingMessage,
  response: ServerResponse,
  alsoAdmit?: (agent: Agent) => Promise<void>,
): Promise<Agent> {
  const refused = await edge.refusalFor(request, response);
  if (refused) throw refused;
  const headers = readTrustedHeaders(request);
  const { remoteAddress } = request.socket;
  try {
    const agent = await authenticator.authenticate({ headers, remoteAddress, method: request.method ?? '' });
    await alsoAdmit?.(agent);
    return agent;
  } catch (error) {
    throw toRefusal(error, authenticator, headers) ?? error;
  }
}

/** The refusal of a caller whose credentials are no longer valid; null for what is no refusal of credentials. */
export function toRefusal(
  error: unknown,
  authenticator: Authenticator,
  headers: CredentialSource['headers'],
): NotServed | null {
  if (error instanceof InsufficientScope) return insufficientScope(authenticator, error.scopes);
  if (error instanceof AuthenticationUnavailable)
    return new NotServed(...CALLER_WORDS.notNow, { 'Retry-After': '5' });
  if (error instanceof SharedStateUnavailable)
    return new NotServed(...CALLER_WORDS.noStateNow, { 'Retry-After': '5' });
  if (error instanceof NotServed) return error;
  if (error instanceof Refused) return new NotServed(...toCallerWords(error.refusal));
  if (!(error instanceof Unauthorized)) return null;
  return new NotServed(
    ...CALLER_WORDS.unauthenticated,
    toChallengeHeaders(authenticator.challengeTo({ headers })),
  );
}

/** Authenticates the caller of a route of Parley beside MCP, and counts the request. */
@Injectable()
export class CallerGuard implements CanActivate {
  constructor(
    @Inject(Authenticator) private readonly authenticator: Authenticator,
    @Inject(McpEdge) private readonly edge: McpEdge,
  ) {}

  /** @throws NotServed */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const { authenticator, edge } = this;
    const http = context.switchToHttp();
    const request = http.getRequest<IncomingMessage>();
    const response = http.getResponse<ServerResponse>();
    const agent = await authenticateCaller(
      { authenticator, edge },
      request,
      response,
      async ({ principal }) => {
        edge.unread.own(response, principal);
        const wait = await edge.spendRequest(principal);
        if (wait !== null) throw notServed(429, { 'Retry-After': String(wait) });
      },
    );
    setCaller(request, agent);
    return true;
  }
}

/** Counts a request to a route as a call of the caller. Runs after `CallerGuard`. */
@Injectable()
export class CallerRateGuard implements CanActivate {
  private readonly logger = new Logger(CallerRateGuard.name);

  /** @throws NotServed */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const { definition, principal } = readCaller(context);
    const spent = await spendLimit(definition.rateLimiter, principal, (error) =>
      this.logger.error(`the rate limiter of '${definition.name}' failed: ${String(error)}`),
    );
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
