import { Controller, Get } from '@nestjs/common';
import { HealthCheckService } from '@nestjs/terminus';
import { ParleyHealthIndicator } from '@parley/server';
import { Public } from './staff/session.guard.js';

@Controller('health')
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly parley: ParleyHealthIndicator,
  ) {}

  @Public()
  @Get()
  check() {
    return this.health.check([() => this.parley.isHealthy('agents')]);
  }
}
