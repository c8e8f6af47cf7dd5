import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { ResourceRegistry } from '#dispatcher';
import { Downloads } from '#streaming';
import { ExportStore } from '#tools';
import { ExportDownloads, ExportResources } from './export-deliveries.js';
import { ExportFiles, ExportJournal } from './export-files.js';
import { EXPORT_SETTINGS, type ExportSettings, ExportTicketStore } from './export-tickets.js';
import { ExportWalk } from './export-walk.js';

/** Exports that are fetched after the call that created them, over HTTP and as resources. */
@Module({
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

  /** @param imports provide the dispatcher, governed data, policies, audit, events, the state keys and the shared state */
  static register(settings: ExportSettings, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: ExportsModule,
      imports: [...(imports ?? [])],
      providers: [{ provide: EXPORT_SETTINGS, useValue: settings }],
    };
  }
}
