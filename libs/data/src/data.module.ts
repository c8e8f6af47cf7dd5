import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { SharedState } from '#cluster';
import { AgentScopes, Policies } from '#policy';
import {
  GovernedRecordsSource,
  GovernedSearchSource,
  GovernedWritesSource,
} from './governed/governed-sources.js';
import { PrincipalDirectory } from './identity/principal-directory.js';
import { PrincipalResolver } from './identity/principal-resolver.js';
import type { DatabaseTurns } from './metering/metered-stores.js';
import { misfitReport } from './misfit-report.js';
import { RecordSearcher } from './record-search.js';
import { RecordReader, RecordWriter } from './record-store.js';
import { SchemaCatalogue, SchemaWriter } from './schema-store.js';
import { StoredWriteKeys } from './stored-write-keys.js';

/** Governed access to rows, over the ports that an adapter provides: whoever reads or writes for an agent goes through it. */
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
        {
          provide: GovernedRecordsSource,
          useFactory: (
            scopes: AgentScopes,
            reader: RecordReader,
            catalogue: SchemaCatalogue,
            identities: PrincipalResolver,
          ) => new GovernedRecordsSource(scopes, reader, catalogue, identities, turns),
          inject: [AgentScopes, RecordReader, SchemaCatalogue, PrincipalResolver],
        },
        GovernedSearchSource,
        {
          provide: StoredWriteKeys,
          useFactory: (s: SharedState) => new StoredWriteKeys(s),
          inject: [SharedState],
        },
        {
          provide: GovernedWritesSource,
          useFactory: (
            records: GovernedRecordsSource,
            rows: RecordWriter,
            classes: SchemaWriter,
            keys: StoredWriteKeys,
          ) => new GovernedWritesSource(records, rows, classes, keys),
          inject: [GovernedRecordsSource, RecordWriter, SchemaWriter, StoredWriteKeys],
        },
      ],
      exports: [PrincipalResolver, GovernedRecordsSource, GovernedSearchSource, GovernedWritesSource],
    };
  }
}
