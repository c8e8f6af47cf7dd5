import { Controller, Get, Inject, Logger, Options, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { AuthenticationUnavailable } from '#auth';
import { CurrentDocuments } from '../oauth.js';

/** These documents are for pages of any origin, and nothing else of this service is. */
const OPEN = { 'Access-Control-Allow-Origin': '*', 'Cross-Origin-Resource-Policy': 'cross-origin' };
const PREFLIGHT = {
  ...OPEN,
  'Access-Control-Allow-Methods': 'GET, HEAD, OPTIONS',
  'Access-Control-Allow-Headers': 'Accept, MCP-Protocol-Version',
  'Access-Control-Max-Age': '86400',
};
const RESOURCE = ['.well-known/oauth-protected-resource', '.well-known/oauth-protected-resource/*path'];
const SERVER = ['.well-known/oauth-authorization-server', '.well-known/oauth-authorization-server/*path'];

/** Where a client without a token finds its authorization server (docs/oauth.md). Asks for no credentials and takes none. */
@Controller()
export class ResourceDocumentsController {
  private readonly logger = new Logger(ResourceDocumentsController.name);

  constructor(@Inject(CurrentDocuments) private readonly current: CurrentDocuments) {}

  @Options([...RESOURCE, ...SERVER])
  preflight(@Res() response: Response): void {
    const { documents } = this.current;
    response
      .status(documents ? 204 : 404)
      .set(documents ? PREFLIGHT : {})
      .end();
  }

  @Get([...RESOURCE, ...SERVER])
  async document(@Req() request: Request, @Res() response: Response): Promise<void> {
    try {
      const document = (await this.current.documents?.at(request.path)) ?? null;
      if (document) response.set({ ...OPEN, 'Cache-Control': 'public, max-age=300' }).json(document);
      else response.status(404).json({ error: 'Not Found' });
    } catch (error) {
      if (!(error instanceof AuthenticationUnavailable)) throw error;
      this.logger.warn(error.message);
      response
        .status(503)
        .set({ ...OPEN, 'Retry-After': '5' })
        .json({ error: 'authorization server unavailable' });
    }
  }
}
