import { Controller, Get, HttpCode, Inject, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Readiness } from './readiness.js';

/** Liveness and readiness, without credentials and without details. */
@Controller()
export class HealthController {
  constructor(@Inject(Readiness) private readonly readiness: Readiness) {}

  /** Asks nothing of any dependency: a process that answers is not to be restarted because its database is away. */
  @Get('health')
  @HttpCode(200)
  health() {
    return { status: 'ok', mcp_enabled: true };
  }

  @Get('ready')
  async ready(@Res() response: Response): Promise<void> {
    const { ready, status, dependencies } = await this.readiness.look();
    response
      .status(ready ? 200 : 503)
      .set('Cache-Control', 'no-store')
      .json({ status, dependencies });
  }
}
