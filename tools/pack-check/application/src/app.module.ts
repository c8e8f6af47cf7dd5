import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerModule } from '@nestjs/throttler';
import { ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { CallerThrottler } from './caller-throttler.js';
import { BillingModule, InvoiceTools } from './invoices.js';

@Controller()
class Pages {
  @Get('hello')
  hello(): { hello: string } {
    return { hello: 'world' };
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
    ParleyModule.forFeature([InvoiceTools], { imports: [BillingModule] }),
  ],
  controllers: [Pages],
  providers: [{ provide: APP_GUARD, useClass: CallerThrottler }],
})
export class AppModule {}
