import { Module } from '@nestjs/common';
import { AuditModule } from '#audit';
import { CoreModule, provideFromInstance } from '#core';
import { DataModule } from '#data';
import { DispatcherModule, ResourceRegistry, StateKeysModule } from '#dispatcher';
import { PolicyModule } from '#policy';
import { StateModule } from '#state';
import { Downloads, McpEdge, WireModule } from '#streaming';
import { ExportStore } from '#tools';
import { ExportDownloads, ExportResources } from './export-deliveries.js';
import { ExportFiles, ExportJournal } from './export-files.js';
import { ExportTicketStore } from './export-tickets.js';
import { ExportWalk } from './export-walk.js';
import { ExportsController } from './exports.controller.js';

/** Exports that are fetched after the call that created them, over HTTP and as resources. */
@Module({
  imports: [
    CoreModule,
    StateModule,
    StateKeysModule,
    PolicyModule,
    DataModule,
    AuditModule,
    DispatcherModule,
    WireModule,
  ],
  providers: [
    ExportTicketStore,
    { provide: ExportStore, useExisting: ExportTicketStore },
    ExportWalk,
    ExportJournal,
    ExportFiles,
    { provide: Downloads, useClass: ExportDownloads },
    ExportResources,
  ],
  exports: [ExportStore, Downloads],
})
export class ExportsModule {
  /** Registers before the hooks of plugins run, which could otherwise take the scheme. */
  constructor(resources: ResourceRegistry, exports: ExportResources) {
    resources.register(exports);
  }
}

/** The route of the files, in the application of the routes beside MCP. */
@Module({ controllers: [ExportsController], providers: [provideFromInstance(McpEdge)] })
export class ExportRoutesModule {}
