import type { Request, Response } from 'express';
import { type Agent, Unauthorized } from '#agent';
import type { Authenticator } from '#auth';
import { type McpEdge, trustedHeaders } from '#streaming';

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

  answer(response: Response): void {
    response.status(this.status).set(this.headers).json({ error: this.message });
  }
}

/**
 * Who asks, for routes beside MCP: what stands before authentication there stands here as well.
 * @throws NotServed
 */
export async function callerOf(
  request: Request,
  response: Response,
  { edge, authenticator }: { readonly edge: McpEdge; readonly authenticator: Authenticator },
): Promise<Agent> {
  const refused = await edge.refusalFor(request, response);
  if (refused) throw new NotServed(refused.status, REFUSED[refused.status] ?? 'Bad Request', refused.headers);
  try {
    return await authenticator.authenticate({
      headers: trustedHeaders(request),
      remoteAddress: request.socket.remoteAddress,
      method: request.method,
    });
  } catch (error) {
    if (error instanceof Unauthorized) throw new NotServed(401, 'Unauthorized: invalid or missing API key');
    throw error;
  }
}
