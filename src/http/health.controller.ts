import { Controller, Get, HttpCode, Inject, Res } from '@nestjs/common';
import type { Response } from 'express';
import { MongoConnection } from '#data-mongo';
import { ParseConnection } from '#data-parse';

/** Milliseconds a dependency has to answer a readiness probe. */
const PROBE_TIMEOUT = 1_000;

/** Liveness and readiness, without credentials and without details. */
@Controller()
export class HealthController {
  constructor(
    @Inject(MongoConnection) private readonly mongo: MongoConnection | null,
    @Inject(ParseConnection) private readonly parse: ParseConnection | null,
  ) {}

  @Get('health')
  @HttpCode(200)
  health() {
    return { status: 'ok', mcp_enabled: true };
  }

  @Get('ready')
  async ready(@Res() response: Response): Promise<void> {
    const probed = await Promise.all([probe('mongodb', this.mongo), probe('parse', this.parse)]);
    const dependencies = Object.fromEntries(probed.flat());
    const ready = Object.values(dependencies).every((state) => state === 'up');
    response.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'unavailable', dependencies });
  }
}

/** Nothing is told of what is not configured. */
async function probe(
  name: string,
  connection: Pick<MongoConnection, 'ping'> | Pick<ParseConnection, 'ping'> | null,
): Promise<[string, 'up' | 'down'][]> {
  if (!connection) return [];
  const state = await connection.ping(PROBE_TIMEOUT).then(
    () => 'up' as const,
    () => 'down' as const,
  );
  return [[name, state]];
}
