import { Module } from '@nestjs/common';
import { getConnectionToken, MongooseModule } from '@nestjs/mongoose';
import { ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { declareClasses } from '@parley/server/mongoose';
import { type Connection, Schema } from 'mongoose';
import { Databases, DatabasesModule } from './databases.module.js';

const orders = new Schema({ _id: String, total: Number, customer: String, region: String });
const customers = new Schema({ _id: String, name: String, email: String, region: String });

const byRegion = { field: 'region' };

const options = (shop: Connection, crm: Connection): ParleyModuleOptions => ({
  databases: {
    // The first one: a class that says nothing is one of it.
    shop: { connection: shop },
    crm: { connection: crm, readOnly: true, required: false },
  },
  classes: [
    ...declareClasses([shop.model('Order', orders)]),
    ...declareClasses([crm.model('Customer', customers)], { database: 'crm' }),
  ],
  policy: {
    classes: {
      Order: {
        tenantScope: byRegion,
        properties: { customer: { type: 'Pointer', targetClass: 'Customer' } },
      },
      Customer: { tenantScope: byRegion, masks: { email: 'mask' } },
    },
  },
  agents: { seller: { permissions: 'admin', tenantId: 'north' } },
  auth: [{ apiKey: 'seller-in-development', agent: 'seller' }],
  gates: { PARSE_AGENT_ALLOW_WRITE_TOOLS: true, PARSE_AGENT_ALLOW_RAW_CRUD: true },
});

@Module({
  imports: [
    DatabasesModule,
    // The connections of the application.
    MongooseModule.forRootAsync({
      inject: [Databases],
      useFactory: ({ shop }: Databases) => ({ uri: shop.uri }),
    }),
    MongooseModule.forRootAsync({
      connectionName: 'crm',
      inject: [Databases],
      useFactory: ({ crm }: Databases) => ({ uri: crm.uri }),
    }),
    ParleyModule.forRootAsync({
      inject: [getConnectionToken(), getConnectionToken('crm')],
      useFactory: options,
    }),
  ],
})
export class AppModule {}
