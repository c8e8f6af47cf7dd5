import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { MongooseModule } from '@nestjs/mongoose';
import { AgentsModule } from './agents/agents.module.js';
import { DatabaseModule, Database } from './database.module.js';
import { ShopModule } from './shop/shop.module.js';
import { StaffGuard } from './staff/staff.guard.js';
import { StaffModule } from './staff/staff.module.js';

@Module({
  imports: [
    DatabaseModule,
    MongooseModule.forRootAsync({
      inject: [Database],
      useFactory: ({ uri }: Database) => ({ uri, dbName: 'shop' }),
    }),
    StaffModule,
    ShopModule,
    // The only line that the application needed for its agents.
    AgentsModule,
  ],
  providers: [{ provide: APP_GUARD, useExisting: StaffGuard }],
})
export class AppModule {}
