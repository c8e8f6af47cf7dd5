import { Module } from '@nestjs/common';
import { ParleyModule } from '@parley/server';
import { CountingTools } from './counting.tools.js';
import { DeliveryTools } from './delivery.tools.js';
import { ItemRules } from './item.rules.js';
import { SeasonTools } from './season.tools.js';
import { StockTools } from './stock.tools.js';

/** Keys for a start from a checkout. A real installation sets its own. */
const keyOf = (agent: string) => process.env[`${agent.toUpperCase()}_KEY`] ?? `${agent}-in-development`;

@Module({
  imports: [
    ParleyModule.forRoot({
      database: { uri: process.env['MONGODB_URI'] ?? 'embedded', seed: 'seed.json' },
      // Whatever changes something needs a person's yes, each time.
      policy: { requireApprovalFor: ['write', 'admin'] },
      // `client`: the person at the calling client. `desk`: the chief, over /mcp/approvals.
      approvals: { mode: process.env['APPROVALS'] === 'desk' ? 'desk' : 'client', approvers: ['chief'] },
      agents: {
        visitor: { permissions: 'readonly' },
        keeper: { permissions: 'write' },
        chief: { permissions: 'write' },
      },
      auth: ['visitor', 'keeper', 'chief'].map((agent) => ({ agent, apiKey: keyOf(agent) })),
    }),
  ],
  providers: [ItemRules, CountingTools, StockTools, DeliveryTools, SeasonTools],
})
export class AppModule {}
