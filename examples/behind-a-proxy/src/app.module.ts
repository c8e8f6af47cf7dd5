import { Controller, Get, Module, Req } from '@nestjs/common';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { ParleyHealthIndicator, ParleyModule } from '@parley/server';
import type { Request } from 'express';
import { ParcelTools } from './parcel.tools.js';

@Controller()
class StatusController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly parley: ParleyHealthIndicator,
  ) {}

  /** Of the replica alone: whether calls should be sent to it. */
  @Get('health')
  check() {
    return this.health.check([() => this.parley.isHealthy('parley')]);
  }

  /** How the application sees its callers through the proxy. */
  @Get('seen')
  seen(@Req() { ip, protocol, host }: Request) {
    return { ip, protocol, host };
  }
}

@Module({
  imports: [
    TerminusModule,
    ParleyModule.forRoot({
      // One for all replicas. A replica that is started alone brings a small one along.
      database: { uri: process.env['MONGODB_URI'] ?? 'embedded', seed: 'seed.json' },
      // Sessions, limits, tasks and answers on their way are shared: any replica serves any request.
      redis: { url: process.env['REDIS_URL'] ?? null },
      server: {
        publicUrl: 'https://parley.test/mcp',
        allowedHosts: ['parley.test'],
        // Seconds that running calls have when this replica is asked to end.
        drainTimeout: 30,
      },
      policy: { classes: { Parcel: { fields: ['to', 'grams'] } } },
      agents: { carrier: { permissions: 'readonly', rateLimit: 10_000 } },
      auth: [{ agent: 'carrier', apiKey: process.env['CARRIER_KEY'] ?? 'carrier-in-development' }],
    }),
  ],
  controllers: [StatusController],
  providers: [ParcelTools],
})
export class AppModule {}
