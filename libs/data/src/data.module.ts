import { Injectable, Module } from '@nestjs/common';
import { CoreModule, provideFromInstance } from '#core';
import { StateModule } from '#state';
import { Policies, PolicyModule } from '#policy';
import { ClassUsesSource } from './governed/class-uses.js';
import {
  GovernedChangesSource,
  GovernedRecordsSource,
  GovernedSearchSource,
  GovernedWritesSource,
} from './governed/governed-sources.js';
import { PrincipalDirectory } from './identity/principal-directory.js';
import { PrincipalResolver } from './identity/principal-resolver.js';
import { DatabaseTurns } from './metering/metered-stores.js';
import { StoresModule } from './stores.module.js';
import { WriteKeys } from './write-keys.js';

/** Reads roles as strictly as the policy of the agent says. */
@Injectable()
class PolicyPrincipalResolver extends PrincipalResolver {
  constructor(directory: PrincipalDirectory, policies: Policies) {
    super(directory, (agent) => policies.of(agent).switches.strictRole);
  }
}

/** Governed access to rows over the ports that an adapter provides: all reads and writes for an agent use it. */
@Module({
  imports: [CoreModule, StateModule, PolicyModule, StoresModule],
  providers: [
    { provide: PrincipalResolver, useClass: PolicyPrincipalResolver },
    provideFromInstance(DatabaseTurns),
    WriteKeys,
    GovernedChangesSource,
    GovernedRecordsSource,
    GovernedSearchSource,
    GovernedWritesSource,
    ClassUsesSource,
  ],
  exports: [
    PrincipalResolver,
    GovernedChangesSource,
    GovernedRecordsSource,
    GovernedSearchSource,
    GovernedWritesSource,
    ClassUsesSource,
  ],
})
export class DataModule {}
