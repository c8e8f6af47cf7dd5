import { Module } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { AGENT_FACTORY, ParleyModule } from '@parley/server';
import { QuotesModule } from '../quotes/quotes.module.js';
import { Sessions } from '../staff/sessions.js';
import { StaffModule } from '../staff/staff.module.js';
import { agentOfEmployee } from './agent-of-employee.js';
import { QuoteTools } from './quote-tools.js';
import { RepairRules } from './repair-rules.js';
import { RepairsController } from './repairs.controller.js';

@Module({
  imports: [
    ParleyModule.forRootAsync({
      imports: [StaffModule],
      inject: [ConfigService],
      useFactory: (config: ConfigService) => ({
        database: {
          uri: config.get('MONGODB_URI', 'embedded'),
          name: config.get('MONGODB_NAME', 'parley'),
          seed: config.get('PARLEY_SEED', 'seed.json'),
        },
        // What no agent of any branch may know, whatever its rights.
        policy: { classes: { _User: { fields: ['username'] }, Payroll: { hidden: true } } },
        // Never the master key: a factory that forgot to say whose rights would admit nobody.
        agents: {
          employee: { permissions: 'readonly', identity: { session: 'caller' } },
          manager: { permissions: 'readonly', identity: { session: 'caller' } },
        },
        // Managers see who asked for what, in every branch, at /console below the path of MCP.
        console: { operators: ['manager'] },
        // AGENT_FACTORY decides who calls a tool, with the sessions that SessionGuard asks for routes.
        globalEnhancers: { guards: false },
      }),
      providers: [{ provide: AGENT_FACTORY, useFactory: agentOfEmployee, inject: [Sessions] }],
    }),
    QuotesModule,
    StaffModule,
  ],
  controllers: [RepairsController],
  providers: [RepairRules, QuoteTools],
})
export class AgentsModule {}
