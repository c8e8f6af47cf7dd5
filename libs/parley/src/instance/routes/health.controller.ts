import { Controller, Get, Header, Inject, Res } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import { ROUTE_PATHS } from '#streaming';
import { Readiness, type ReadyState } from './readiness.js';

/** Liveness, without credentials. It probes no dependency: a process must not be restarted because its database is down. */
@Controller(ROUTE_PATHS.health)
export class HealthController {
  @Get()
  read(): object {
    return { status: 'ok', mcp_enabled: true };
  }
}

/** Readiness, without credentials and without details. */
@Controller(ROUTE_PATHS.ready)
export class ReadyController {
  constructor(@Inject(Readiness) private readonly readiness: Readiness) {}

  @Get()
  @Header('Cache-Control', 'no-store')
  async read(
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<Pick<ReadyState, 'status' | 'dependencies'>> {
    const { ready, status, dependencies } = await this.readiness.look();
    response.statusCode = ready ? 200 : 503;
    return { status, dependencies };
  }
}
