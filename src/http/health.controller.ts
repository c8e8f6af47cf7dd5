import { Controller, Get, HttpCode, Inject, Res } from '@nestjs/common';
import type { Response } from 'express';
import { SharedState } from '#cluster';
import { MongoConnection } from '#data-mongo';

/** Milliseconds a dependency has to answer a readiness probe. */
const PROBE_TIMEOUT = 1_000;

/** Liveness and readiness, without credentials and without details. */
@Controller()
export class HealthController {
  constructor(
    @Inject(MongoConnection) private readonly connection: MongoConnection,
    @Inject(SharedState) private readonly shared: SharedState,
  ) {}

  @Get('health')
  @HttpCode(200)
  health() {
    return { status: 'ok', mcp_enabled: true };
  }

  @Get('ready')
  async ready(@Res() response: Response): Promise<void> {
    const [mongodb, redis] = await Promise.all([
      this.connection.ping(PROBE_TIMEOUT).then(
        () => true,
        () => false,
      ),
      this.shared.isUp(),
    ]);
    const ready = mongodb && redis;
    const dependencies = {
      mongodb: mongodb ? 'up' : 'down',
      // Memory of this process is no dependency.
      ...(this.shared.reach === 'replicas' && { redis: redis ? 'up' : 'down' }),
    };
    response.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'unavailable', dependencies });
  }
}
