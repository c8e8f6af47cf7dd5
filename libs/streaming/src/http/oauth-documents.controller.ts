import {
  All,
  type CanActivate,
  Controller,
  Get,
  HttpCode,
  Inject,
  Injectable,
  Logger,
  Options,
  Param,
  Res,
  UseGuards,
} from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import { AuthenticationUnavailable, CurrentDocuments } from '#auth';
import { CALLER_WORDS } from './refusals.js';
import { ROUTE_PATHS } from './route-paths.js';
import { NotServed, notServed } from './routes.js';

/** Pages of any origin may read these documents; other routes are for listed origins alone. */
const OPEN = { 'Access-Control-Allow-Origin': '*', 'Cross-Origin-Resource-Policy': 'cross-origin' };
const METHODS = 'GET, HEAD, OPTIONS';
const PREFLIGHT = {
  ...OPEN,
  'Access-Control-Allow-Methods': METHODS,
  'Access-Control-Allow-Headers': 'Accept, MCP-Protocol-Version',
  'Access-Control-Max-Age': '86400',
};
/** The path of a document is followed by the path of the resource or of the issuer. */
const ENDING = '*ending';

/** Where no tokens are accepted there are no documents. */
@Injectable()
class DocumentsGuard implements CanActivate {
  constructor(@Inject(CurrentDocuments) private readonly current: CurrentDocuments) {}

  /** @throws NotServed */
  canActivate(): boolean {
    if (!this.current.documents) throw notServed(404);
    return true;
  }
}

/**
 * Documents with the authorization server for clients without a token (docs/operations/oauth.md). They need and accept
 * no credentials.
 */
@UseGuards(DocumentsGuard)
abstract class DocumentsController {
  protected abstract readonly path: string;
  private readonly logger = new Logger('Documents');

  constructor(private readonly current: CurrentDocuments) {}

  @Get(ENDING)
  async read(
    @Param('ending') ending: string | undefined,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<object> {
    try {
      const path = ending === undefined ? this.path : `${this.path}/${ending}`;
      const document = await this.current.documents?.at(path);
      if (!document) throw notServed(404);
      const headers = Object.entries({ ...OPEN, 'Cache-Control': 'public, max-age=300' });
      // A response of HTTP/2 has no `setHeaders`.
      for (const [name, value] of headers) response.setHeader(name, value);
      return document;
    } catch (error) {
      if (!(error instanceof AuthenticationUnavailable)) throw error;
      this.logger.warn(error.message);
      throw new NotServed(...CALLER_WORDS.noIssuerNow, { ...OPEN, 'Retry-After': '5' });
    }
  }

  @Options(ENDING)
  @HttpCode(204)
  preflight(@Res() response: ServerResponse): void {
    response.writeHead(204, PREFLIGHT).end();
  }

  @All(ENDING)
  refuse(): never {
    throw notServed(405, { Allow: METHODS });
  }
}

/** RFC 9728. */
@Controller(ROUTE_PATHS.protectedResource)
export class ProtectedResourceController extends DocumentsController {
  protected readonly path = ROUTE_PATHS.protectedResource;

  constructor(@Inject(CurrentDocuments) current: CurrentDocuments) {
    super(current);
  }
}

/** RFC 8414, for the first issuer: for clients of 2025-03-26. */
@Controller(ROUTE_PATHS.authorizationServer)
export class AuthorizationServerController extends DocumentsController {
  protected readonly path = ROUTE_PATHS.authorizationServer;

  constructor(@Inject(CurrentDocuments) current: CurrentDocuments) {
    super(current);
  }
}
