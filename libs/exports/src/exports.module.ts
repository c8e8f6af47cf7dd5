import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { SharedState } from '#state';
import { ResourceRegistry, SealedText, StateKeys } from '#dispatcher';
import { Downloads, ServedAt } from '#streaming';
import { ExportStore } from '#tools';
import { ExportDownloads, ExportResources } from './export-deliveries.js';
import { ExportFiles } from './export-files.js';
import { ExportJournal } from './export-journal.js';
import { EXPORT_SETTINGS, type ExportSettings, ExportTicketStore } from './export-tickets.js';
import { ExportWalk } from './export-walk.js';

/** Exports that are fetched after the call that created them, over HTTP and as resources. */
@Module({})
export class ExportsModule {
  /** @param imports provide the dispatcher, governed data, policies, audit, events, the state keys and the shared state */
  static register(settings: ExportSettings, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: ExportsModule,
      imports: [...(imports ?? [])],
      providers: [
        {
          provide: ExportTicketStore,
          useFactory: ({ exports }: SharedState, servedAt: ServedAt) =>
            new ExportTicketStore(exports, settings, () => servedAt.downloads),
          inject: [SharedState, ServedAt],
        },
        { provide: ExportStore, useExisting: ExportTicketStore },
        { provide: EXPORT_SETTINGS, useValue: settings },
        ExportWalk,
        ExportJournal,
        ExportFiles,
        { provide: Downloads, useClass: ExportDownloads },
        {
          provide: ExportResources,
          useFactory: (
            files: ExportFiles,
            office: ExportTicketStore,
            keys: StateKeys,
            registry: ResourceRegistry,
          ) => {
            const sealed = new SealedText(keys, 'parley export part');
            const resources = new ExportResources({ files, office, sealed });
            registry.register(resources);
            return resources;
          },
          inject: [ExportFiles, ExportTicketStore, StateKeys, ResourceRegistry],
        },
      ],
      exports: [ExportStore, Downloads],
    };
  }
}
