import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Agent, Unauthorized } from '#agent';
import {
  AuthenticationUnavailable,
  type Authenticator,
  type CredentialSource,
  InsufficientScope,
} from '#auth';
import { type McpEdge, trustedHeaders } from '#streaming';
import { sendJson } from './neighbour.js';

const REFUSED: Readonly<Record<number, string>> = {
  403: 'Host or Origin not allowed',
  429: 'Too Many Requests',
  503: 'server busy',
};

/** Why nobody is served: an HTTP status, its words and headers. */
export class NotServed extends Error {
  override readonly name = 'NotServed';
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }

  answer(response: ServerResponse): void {
    sendJson(response, this.status, { error: this.message }, this.headers);
  }
}

function refusedCredentials(
  error: unknown,
  authenticator: Authenticator,
  headers: CredentialSource['headers'],
): NotServed | null {
  const challenging = (challenge: string | undefined): Record<string, string> =>
    challenge === undefined ? {} : { 'WWW-Authenticate': challenge };
  if (error instanceof InsufficientScope)
    return new NotServed(403, 'Insufficient scope', challenging(authenticator.scopeChallenge(error.scopes)));
  if (error instanceof AuthenticationUnavailable)
    return new NotServed(503, 'authentication unavailable', { 'Retry-After': '5' });
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
  if (refused) throw new NotServed(refused.status, REFUSED[refused.status] ?? 'Bad Request', refused.headers);
  try {
    return await authenticator.authenticate({
      headers: trustedHeaders(request),
      remoteAddress: request.socket.remoteAddress,
      method: request.method ?? '',
    });
  } catch (error) {
    throw refusedCredentials(error, authenticator, trustedHeaders(request)) ?? error;
  }
}
