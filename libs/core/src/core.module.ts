import { Module } from '@nestjs/common';
import { CurrentAgents } from './agent.js';
import { provideFromInstance } from './instance-providers.js';
import { MCP_PATH, ServedAt } from './served-at.js';

/** The named agents of the served configuration, and where the instance is served. */
@Module({
  providers: [
    provideFromInstance(CurrentAgents),
    { provide: ServedAt, useFactory: (path: string) => new ServedAt(path), inject: [MCP_PATH] },
  ],
  exports: [CurrentAgents, ServedAt],
})
export class CoreModule {}
