import type { Provider } from '@nestjs/common';
import {
  type DatabaseTurns,
  GovernedRecordsSource,
  GovernedWritesSource,
  PrincipalDirectory,
  PrincipalResolver,
  RecordReader,
  RecordWriter,
  SchemaCatalogue,
  SchemaWriter,
} from '#data';
import { SharedState } from '#cluster';
import { RecordsSource } from '#dispatcher';
import { StoredWriteKeys } from './stored-write-keys.js';
import { AgentScopes, type Policies } from '#policy';
import { misfitReport } from './misfit-report.js';

/** The doors to rows, over the ports to data: whoever reads or writes for an agent goes through them. */
export function governedDataProviders(policies: Policies, turns: DatabaseTurns): Provider[] {
  return [
    {
      provide: PrincipalResolver,
      useFactory: (directory: PrincipalDirectory) =>
        new PrincipalResolver(directory, (agent) => policies.of(agent).switches.strictRole),
      inject: [PrincipalDirectory],
    },
    {
      provide: GovernedRecordsSource,
      useFactory: (reader: RecordReader, catalogue: SchemaCatalogue, identities: PrincipalResolver) =>
        new GovernedRecordsSource(
          new AgentScopes(policies, misfitReport()),
          reader,
          catalogue,
          identities,
          turns,
        ),
      inject: [RecordReader, SchemaCatalogue, PrincipalResolver],
    },
    {
      provide: GovernedWritesSource,
      useFactory: (
        records: GovernedRecordsSource,
        rows: RecordWriter,
        classes: SchemaWriter,
        shared: SharedState,
      ) => new GovernedWritesSource(records, rows, classes, new StoredWriteKeys(shared)),
      inject: [GovernedRecordsSource, RecordWriter, SchemaWriter, SharedState],
    },
    { provide: RecordsSource, useExisting: GovernedRecordsSource },
  ];
}
