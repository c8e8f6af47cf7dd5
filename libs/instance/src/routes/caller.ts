import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Agent, Unauthorized } from '#agent';
import {
  AuthenticationUnavailable,
  type Authenticator,
  type CredentialSource,
  InsufficientScope,
} from '#auth';
import { SharedStateUnavailable } from '#cluster';
import { type McpEdge, NotServed, notServed, trustedHeaders } from '#streaming';
import { sendJson } from './neighbour.js';

/** Tells whoever asked why they are not served. */
export function tellRefused(response: ServerResponse, { status, message, headers }: NotServed): void {
  sendJson(response, status, { error: message }, headers);
}

const challenging = (challenge: string | undefined): Record<string, string> =>
  challenge === undefined ? {} : { 'WWW-Authenticate': challenge };

const insufficientScope = (authenticator: Authenticator, scopes: readonly string[]) =>
  new NotServed(403, 'Insufficient scope', challenging(authenticator.scopeChallenge(scopes)));

/** Why a caller is not served whom more scopes would make an agent that suffices; null where none would. */
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
 * Who asks, for routes beside MCP: what stands before authentication there stands here as well.
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
