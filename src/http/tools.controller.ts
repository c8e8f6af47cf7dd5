import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Unauthorized } from '#agent';
import { Authenticator } from '#auth';
import { describeTool, dialectOf, LEGACY_VERSIONS } from '#dispatcher';
import { McpEdge } from '#streaming';
import { ToolRunner } from '#tools';

const LATEST = dialectOf('legacy', LEGACY_VERSIONS[0]);

/** The caller's tools as a bare list, for people and scripts. */
@Controller()
export class ToolsController {
  constructor(
    @Inject(Authenticator) private readonly authenticator: Authenticator,
    @Inject(ToolRunner) private readonly runner: ToolRunner,
    @Inject(McpEdge) private readonly edge: McpEdge,
  ) {}

  @Get('tools')
  async list(@Req() request: Request, @Res() response: Response): Promise<void> {
    if (!this.edge.admits(request.headers)) {
      response.status(403).json({ error: 'Host or Origin not allowed' });
      return;
    }
    try {
      const agent = await this.authenticator.authenticate({
        headers: request.headers,
        remoteAddress: request.socket.remoteAddress,
        method: request.method,
      });
      response.json(this.runner.list({ agent }).map((tool) => describeTool(tool, LATEST)));
    } catch (error) {
      if (!(error instanceof Unauthorized)) throw error;
      response.status(401).json({ error: 'Unauthorized: invalid or missing API key' });
    }
  }
}
