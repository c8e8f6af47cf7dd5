import { Module } from '@nestjs/common';
import { CurrentAgents } from './agent-definition.js';
import { provideFromInstance } from './instance-providers.js';

/** The named agents of the served configuration. */
@Module({ providers: [provideFromInstance(CurrentAgents)], exports: [CurrentAgents] })
export class CoreModule {}
