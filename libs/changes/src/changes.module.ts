import { Module } from '@nestjs/common';
import { AuditModule } from '#audit';
import { CoreModule } from '#core';
import { DataModule, StoresModule } from '#data';
import { StateKeysModule } from '#dispatcher';
import { Changes } from '#tools';
import { ChangeRecords } from './change-records.js';
import { ChangeSeal } from './change-seal.js';
import { OwnedSets } from './owned-sets.js';
import { SetSubmissions } from './set-submissions.js';
import { StoredChanges } from './stored-changes.js';

/** Change sets: what agents propose, until it is applied or taken back. */
@Module({
  imports: [CoreModule, StateKeysModule, StoresModule, DataModule, AuditModule],
  providers: [
    ChangeSeal,
    ChangeRecords,
    OwnedSets,
    SetSubmissions,
    { provide: Changes, useClass: StoredChanges },
  ],
  exports: [Changes],
})
export class ChangesModule {}
