import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { SharedState } from '#state';
import { AgentScopes, Policies } from '#policy';
import {
  GovernedRecordsSource,
  GovernedSearchSource,
  GovernedWritesSource,
} from './governed/governed-sources.js';
import { PrincipalDirectory } from './identity/principal-directory.js';
import { PrincipalResolver } from './identity/principal-resolver.js';
import { DatabaseTurns } from './metering/metered-stores.js';
import { misfitReport } from './misfit-report.js';
import { StoredWriteKeys } from './stored-write-keys.js';
import { WriteKeys } from './write-keys.js';

/** Governed access to rows over the ports that an adapter provides: all reads and writes for an agent use it. */
@Module({})
export class DataModule {
  /**
   * @param turns how the database is shared among principals
   * @param imports provide the ports to data, the policies and the shared state
   */
  static register(turns: DatabaseTurns, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: DataModule,
      imports: [...(imports ?? [])],
      providers: [
        {
          provide: PrincipalResolver,
          useFactory: (directory: PrincipalDirectory, policies: Policies) =>
            new PrincipalResolver(directory, (agent) => policies.of(agent).switches.strictRole),
          inject: [PrincipalDirectory, Policies],
        },
        {
          provide: AgentScopes,
          useFactory: (policies: Policies) => new AgentScopes(policies, misfitReport()),
          inject: [Policies],
        },
        { provide: DatabaseTurns, useValue: turns },
        {
          provide: WriteKeys,
          useFactory: (shared: SharedState) => new StoredWriteKeys(shared),
          inject: [SharedState],
        },
        GovernedRecordsSource,
        GovernedSearchSource,
        GovernedWritesSource,
      ],
      exports: [PrincipalResolver, GovernedRecordsSource, GovernedSearchSource, GovernedWritesSource],
    };
  }
}
