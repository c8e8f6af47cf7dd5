import { Controller, Get, Module } from '@nestjs/common';
import { ParleyModule, type ParleyModuleOptions } from '@parley/server';
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
    auth: [{ apiKey: 'key-of-the-clerk', agent: 'clerk' }],
    ...(REDIS !== undefined && { redis: { url: REDIS } }),
  };
}

@Module({
  imports: [
    ParleyModule.forRootAsync({ useFactory: options }),
    ParleyModule.forFeature([InvoiceTools], { imports: [BillingModule] }),
  ],
  controllers: [Pages],
})
export class AppModule {}
