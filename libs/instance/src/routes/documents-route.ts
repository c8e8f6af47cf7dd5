import { Inject, Injectable, Logger } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { AuthenticationUnavailable } from '#auth';
import { CurrentDocuments } from '../auth/oauth-rules.js';
import { isReading, type HttpRoute, notFound, sendJson, wrongVerb } from './http-routes.js';

/** Pages of any origin may read these documents, and no other route of this service. */
const OPEN = { 'Access-Control-Allow-Origin': '*', 'Cross-Origin-Resource-Policy': 'cross-origin' };
const VERBS = 'GET, HEAD, OPTIONS';
const PREFLIGHT = {
  ...OPEN,
  'Access-Control-Allow-Methods': VERBS,
  'Access-Control-Allow-Headers': 'Accept, MCP-Protocol-Version',
  'Access-Control-Max-Age': '86400',
};

/**
 * Documents with the authorization server for clients without a token (docs/operations/oauth.md). They need and accept
 * no credentials.
 */
abstract class DocumentsRoute implements HttpRoute {
  abstract readonly path: string;
  private readonly logger = new Logger('Documents');

  constructor(private readonly current: CurrentDocuments) {}

  async answer(request: IncomingMessage, response: ServerResponse, below: string): Promise<void> {
    const { documents } = this.current;
    if (!documents) return notFound(response);
    if (request.method === 'OPTIONS') return void response.writeHead(204, PREFLIGHT).end();
    if (!isReading(request)) return wrongVerb(response, VERBS);
    try {
      const document = await documents.at(`${this.path}${below}`);
      if (!document) return notFound(response);
      sendJson(response, 200, document, { ...OPEN, 'Cache-Control': 'public, max-age=300' });
    } catch (error) {
      if (!(error instanceof AuthenticationUnavailable)) throw error;
      this.logger.warn(error.message);
      const unavailable = { error: 'authorization server unavailable' };
      sendJson(response, 503, unavailable, { ...OPEN, 'Retry-After': '5' });
    }
  }
}

/** RFC 9728. */
@Injectable()
export class ProtectedResourceRoute extends DocumentsRoute {
  readonly path = '/.well-known/oauth-protected-resource';

  constructor(@Inject(CurrentDocuments) current: CurrentDocuments) {
    super(current);
  }
}

/** RFC 8414, for the first issuer: for clients of 2025-03-26. */
@Injectable()
export class AuthorizationServerRoute extends DocumentsRoute {
  readonly path = '/.well-known/oauth-authorization-server';

  constructor(@Inject(CurrentDocuments) current: CurrentDocuments) {
    super(current);
  }
}
