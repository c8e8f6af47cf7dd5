import { Module } from '@nestjs/common';
import { AuditModule } from '#audit';
import { CoreModule } from '#core';
import { DataModule, StoresModule, WriteRecorder } from '#data';
import { StateKeysModule } from '#dispatcher';
import { Changes } from '#tools';
import { ChangeRecords } from './change-records.js';
import { ChangeSeal } from './change-seal.js';
import { DirectWrites } from './direct-writes.js';
import { OwnedSets } from './owned-sets.js';
import { SetSubmissions } from './set-submissions.js';
import { StoredChanges } from './stored-changes.js';

/** The sets of every owner, and what is sealed in them. It needs no way to rows. */
@Module({
  imports: [StateKeysModule, StoresModule, AuditModule],
  providers: [ChangeSeal, ChangeRecords, OwnedSets, { provide: WriteRecorder, useClass: DirectWrites }],
  exports: [ChangeSeal, ChangeRecords, OwnedSets, WriteRecorder],
})
export class ChangeSetsModule {}

/** Change sets: what agents propose, until it is applied or taken back. */
@Module({
  imports: [CoreModule, StoresModule, DataModule, AuditModule, ChangeSetsModule],
  providers: [SetSubmissions, { provide: Changes, useClass: StoredChanges }],
  exports: [Changes],
})
export class ChangesModule {}
