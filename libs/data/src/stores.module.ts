import { Module } from '@nestjs/common';
import { provideFromInstance, provideReplaceable } from '#core';
import { StateModule } from '#state';
import { ChangeSets } from './changes/change-sets.js';
import { RowTransactions } from './changes/row-transactions.js';
import { Impersonation, UserSessions } from './identity/impersonation.js';
import { CachedPrincipalDirectory, PrincipalDirectory } from './identity/principal-directory.js';
import { SearchStore } from './record-search.js';
import { ReadStore, WriteStore } from './record-store.js';
import { SchemaCatalogue, SchemaWriter, WrittenClasses } from './schema-store.js';

/** The ports to data. An instance provides them by an adapter, an application or a simulation by its own. */
@Module({
  imports: [StateModule],
  providers: [
    provideFromInstance(ReadStore),
    provideFromInstance(SearchStore),
    provideFromInstance(WriteStore),
    provideFromInstance(ChangeSets),
    provideFromInstance(RowTransactions),
    provideFromInstance(SchemaCatalogue),
    provideFromInstance(SchemaWriter),
    provideFromInstance(CachedPrincipalDirectory),
    provideReplaceable(PrincipalDirectory, CachedPrincipalDirectory),
    provideFromInstance(UserSessions),
    {
      provide: Impersonation,
      useFactory: (sessions: UserSessions) => new Impersonation(sessions),
      inject: [UserSessions],
    },
    WrittenClasses,
  ],
  exports: [
    ReadStore,
    SearchStore,
    WriteStore,
    ChangeSets,
    RowTransactions,
    SchemaCatalogue,
    SchemaWriter,
    CachedPrincipalDirectory,
    PrincipalDirectory,
    Impersonation,
    WrittenClasses,
  ],
})
export class StoresModule {}
