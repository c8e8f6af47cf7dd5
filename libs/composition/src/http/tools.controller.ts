import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Authenticator } from '#auth';
import { describeTool, dialectOf, LEGACY_VERSIONS } from '#dispatcher';
import { McpEdge } from '#streaming';
import { ToolRunner } from '#tools';
import { callerOf, NotServed } from './caller.js';

const LATEST = dialectOf('legacy', LEGACY_VERSIONS[0]);

/** The caller's tools as a bare list, for people and scripts. */
@Controller()
export class ToolsController {
  constructor(
    @Inject(Authenticator) readonly authenticator: Authenticator,
    @Inject(ToolRunner) private readonly runner: ToolRunner,
    @Inject(McpEdge) readonly edge: McpEdge,
  ) {}

  @Get('tools')
  async list(@Req() request: Request, @Res() response: Response): Promise<void> {
    try {
      const agent = await callerOf(request, response, this);
      response.json(this.runner.list({ agent }).map((tool) => describeTool(tool, LATEST)));
    } catch (error) {
      if (!(error instanceof NotServed)) throw error;
      error.answer(response);
    }
  }
}
