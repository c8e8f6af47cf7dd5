import { Module } from '@nestjs/common';
import { ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { Databases, DatabasesModule } from './databases.module.js';

const byRegion = { field: 'region' };

const options = ({ shop, crm }: Databases): ParleyModuleOptions => ({
  databases: {
    // The first one: a class that says nothing is one of it.
    shop: { uri: shop.uri, storage: 'plain' },
    crm: { uri: crm.uri, storage: 'plain', readOnly: true, required: false },
  },
  policy: {
    classes: {
      Order: {
        collection: 'orders',
        timestamps: null,
        tenantScope: byRegion,
        properties: { customer: { type: 'Pointer', targetClass: 'Customer' }, total: { type: 'Number' } },
      },
      Customer: {
        database: 'crm',
        collection: 'customers',
        timestamps: null,
        tenantScope: byRegion,
        masks: { email: 'mask' },
      },
    },
  },
  agents: { seller: { permissions: 'admin', tenantId: 'north' } },
  auth: [{ apiKey: 'seller-in-development', agent: 'seller' }],
  gates: { PARSE_AGENT_ALLOW_WRITE_TOOLS: true, PARSE_AGENT_ALLOW_RAW_CRUD: true },
});

@Module({
  imports: [
    ParleyModule.forRootAsync({
      imports: [DatabasesModule],
      inject: [Databases],
      useFactory: options,
    }),
  ],
})
export class AppModule {}
