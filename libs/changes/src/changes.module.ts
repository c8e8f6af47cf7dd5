import { Module } from '@nestjs/common';
import { AuditModule } from '#audit';
import { CoreModule, provideFromInstance } from '#core';
import { DataModule, StoresModule, WriteRecorder } from '#data';
import { StateKeysModule } from '#dispatcher';
import { PolicyModule } from '#policy';
import { StateModule } from '#state';
import { Changes, ToolEnvironment } from '#tools';
import { ChangeRecords } from './change-records.js';
import { ChangeSeal } from './change-seal.js';
import { DirectWrites } from './direct-writes.js';
import { OpenSets } from './open-sets.js';
import { OverdueSets } from './overdue-sets.js';
import { OwnedSets } from './owned-sets.js';
import { OperatorChanges } from './operator-changes.js';
import { SetApplication } from './set-application.js';
import { SetCases } from './set-cases.js';
import { SetUndo } from './set-undo.js';
import { SetSubmissions } from './set-submissions.js';
import { StoredChanges } from './stored-changes.js';

/** The sets of every owner, and what is sealed in them. It needs no way to rows. */
@Module({
  imports: [StateKeysModule, StateModule, StoresModule, AuditModule],
  providers: [
    ChangeSeal,
    ChangeRecords,
    SetCases,
    OwnedSets,
    OverdueSets,
    { provide: WriteRecorder, useClass: DirectWrites },
  ],
  exports: [ChangeSeal, ChangeRecords, OwnedSets, WriteRecorder],
})
export class ChangeSetsModule {}

/** Change sets: what agents propose, until it is applied or taken back. */
@Module({
  imports: [CoreModule, PolicyModule, StoresModule, DataModule, AuditModule, ChangeSetsModule],
  providers: [
    provideFromInstance(ToolEnvironment),
    OpenSets,
    SetUndo,
    SetApplication,
    SetSubmissions,
    OperatorChanges,
    { provide: Changes, useClass: StoredChanges },
  ],
  exports: [Changes, OperatorChanges],
})
export class ChangesModule {}
