import { Module } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_GUARD } from '@nestjs/core';
import { TerminusModule } from '@nestjs/terminus';
import { AgentsModule } from './agents/agents.module.js';
import { HealthController } from './health.controller.js';
import { QuotesModule } from './quotes/quotes.module.js';
import { SessionGuard } from './staff/session.guard.js';
import { StaffModule } from './staff/staff.module.js';

@Module({
  imports: [
    ConfigModule.forRoot({ isGlobal: true, envFilePath: 'development.env' }),
    TerminusModule,
    StaffModule,
    QuotesModule,
    // The only line that the application needed for its agents.
    AgentsModule,
  ],
  controllers: [HealthController],
  providers: [{ provide: APP_GUARD, useClass: SessionGuard }],
})
export class AppModule {}
