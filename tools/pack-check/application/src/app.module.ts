import { Controller, Get, Module, UseGuards } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerModule } from '@nestjs/throttler';
import {
  CurrentCall,
  ParleyGuard,
  ParleyModule,
  type ParleyModuleOptions,
  RequirePermission,
  type ToolCall,
  UsesClass,
} from '@parley/server';
import { CallerThrottler } from './caller-throttler.js';
import { BillingModule } from './invoices.js';

@Controller()
class Pages {
  @Get('hello')
  hello(): { hello: string } {
    return { hello: 'world' };
  }
}

@Controller('invoices')
@UseGuards(ParleyGuard)
@RequirePermission('readonly')
@UsesClass('Invoice')
class Invoices {
  @Get()
  async list(@CurrentCall() { records }: ToolCall): Promise<{ invoices: unknown[] }> {
    const rows = await records.find('Invoice', { order: 'number' });
    return { invoices: rows.map(({ number }) => number) };
  }
}

function options(): ParleyModuleOptions {
  const { REDIS } = process.env;
  return {
    database: { uri: 'embedded', seed: './seed.json' },
    agents: { clerk: { permissions: 'readonly' } },
    auth: [
      { apiKey: 'key-of-the-clerk', agent: 'clerk' },
      { apiKey: 'key-of-another', agent: 'clerk' },
    ],
    globalEnhancers: { guards: true },
    ...(REDIS !== undefined && { redis: { url: REDIS } }),
  };
}

@Module({
  imports: [
    ThrottlerModule.forRoot([{ ttl: 60_000, limit: 3 }]),
    ParleyModule.forRootAsync({ useFactory: options }),
    BillingModule,
  ],
  controllers: [Pages, Invoices],
  providers: [{ provide: APP_GUARD, useClass: CallerThrottler }],
})
export class AppModule {}
