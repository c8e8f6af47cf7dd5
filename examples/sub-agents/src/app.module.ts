import { Module } from '@nestjs/common';
import { ParleyModule } from '@parley/server';
import { InstructedModel, Model } from './model.js';
import { ResearchTools } from './research.tools.js';

/** Keys for a start from a checkout. A real installation sets its own. */
const keyOf = (agent: string) => process.env[`${agent.toUpperCase()}_KEY`] ?? `${agent}-in-development`;

@Module({
  imports: [
    ParleyModule.forRoot({
      database: { uri: process.env['MONGODB_URI'] ?? 'embedded', seed: 'seed.json' },
      policy: {
        classes: {
          Article: { fields: ['title', 'status', 'year', 'source'] },
          Source: { fields: ['name', 'phone'] },
          Contract: { hidden: true },
        },
      },
      agents: {
        // Reads drafts and sources, and may write.
        editor: { permissions: 'write' },
        intern: { permissions: 'readonly', classes: { only: ['Article'] } },
      },
      auth: ['editor', 'intern'].map((agent) => ({ agent, apiKey: keyOf(agent) })),
    }),
  ],
  // Your model goes here: nothing that it says can make the researcher more than it is.
  providers: [ResearchTools, { provide: Model, useClass: InstructedModel }],
})
export class AppModule {}
