import { Controller, Get, HttpCode, Inject, Res } from '@nestjs/common';
import type { Response } from 'express';
import { MongoConnection } from '#data-mongo';

/** Milliseconds a dependency has to answer a readiness probe. */
const PROBE_TIMEOUT = 1_000;

/** Liveness and readiness, without credentials and without details. */
@Controller()
export class HealthController {
  constructor(@Inject(MongoConnection) private readonly connection: MongoConnection) {}

  @Get('health')
  @HttpCode(200)
  health() {
    return { status: 'ok', mcp_enabled: true };
  }

  @Get('ready')
  async ready(@Res() response: Response): Promise<void> {
    const mongodb = await this.connection.ping(PROBE_TIMEOUT).then(
      () => 'up' as const,
      () => 'down' as const,
    );
    const ready = mongodb === 'up';
    response
      .status(ready ? 200 : 503)
      .json({ status: ready ? 'ready' : 'unavailable', dependencies: { mongodb } });
  }
}
