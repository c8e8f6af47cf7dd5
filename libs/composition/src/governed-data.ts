import type { Provider } from '@nestjs/common';
import {
  GovernedRecordsSource,
  GovernedWritesSource,
  PrincipalDirectory,
  PrincipalResolver,
  RecordReader,
  RecordWriter,
  SchemaCatalogue,
  SchemaWriter,
} from '#data';
import { RecordsSource } from '#dispatcher';
import { AgentScopes, type Policies } from '#policy';

/** The doors to rows, over the ports to data: whoever reads or writes for an agent goes through them. */
export function governedDataProviders(policies: Policies): Provider[] {
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
        new GovernedRecordsSource(new AgentScopes(policies), reader, catalogue, identities),
      inject: [RecordReader, SchemaCatalogue, PrincipalResolver],
    },
    {
      provide: GovernedWritesSource,
      useFactory: (records: GovernedRecordsSource, rows: RecordWriter, classes: SchemaWriter) =>
        new GovernedWritesSource(records, rows, classes),
      inject: [GovernedRecordsSource, RecordWriter, SchemaWriter],
    },
    { provide: RecordsSource, useExisting: GovernedRecordsSource },
  ];
}
