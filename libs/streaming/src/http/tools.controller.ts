import { Controller, Get, Inject, UseGuards } from '@nestjs/common';
import type { Agent } from '#core';
import { describeTool, findDialect, LEGACY_VERSIONS } from '#dispatcher';
import { ToolRunner } from '#tools';
import { CallerGuard, CurrentAgent } from './caller.guard.js';
import { ROUTE_PATHS } from './route-paths.js';

const LATEST_DIALECT = findDialect('legacy', LEGACY_VERSIONS[0]);

/** The caller's tools as a bare list, for people and scripts. */
@Controller(ROUTE_PATHS.tools)
@UseGuards(CallerGuard)
export class ToolsController {
  constructor(@Inject(ToolRunner) private readonly runner: ToolRunner) {}

  @Get()
  async list(@CurrentAgent() agent: Agent): Promise<object> {
    return (await this.runner.listTools({ agent })).map((tool) => describeTool(tool, LATEST_DIALECT));
  }
}
