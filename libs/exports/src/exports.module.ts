import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { SharedState } from '#cluster';
import { ResourceRegistry, SealedText, StateKeys } from '#dispatcher';
import { Downloads, ServedAt } from '#streaming';
import { ExportDesk } from '#tools';
import { ExportDownloads, ExportResources } from './export-deliveries.js';
import { ExportFiles } from './export-files.js';
import { ExportJournal } from './export-journal.js';
import { EXPORT_SETTINGS, type ExportSettings, TicketOffice } from './export-tickets.js';
import { ExportWalk } from './export-walk.js';

/** Exports that are fetched after they were asked for, over HTTP and as resources. */
@Module({})
export class ExportsModule {
  /** @param imports provide the dispatcher, governed data, policies, audit, events, the state keys and the shared state */
  static register(settings: ExportSettings, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: ExportsModule,
      imports: [...(imports ?? [])],
      providers: [
        {
          provide: TicketOffice,
          useFactory: ({ exports }: SharedState, servedAt: ServedAt) =>
            new TicketOffice(exports, settings, () => servedAt.downloads),
          inject: [SharedState, ServedAt],
        },
        { provide: ExportDesk, useExisting: TicketOffice },
        { provide: EXPORT_SETTINGS, useValue: settings },
        ExportWalk,
        ExportJournal,
        ExportFiles,
        { provide: Downloads, useClass: ExportDownloads },
        {
          provide: ExportResources,
          useFactory: (
            files: ExportFiles,
            office: TicketOffice,
            keys: StateKeys,
            registry: ResourceRegistry,
          ) => {
            const sealed = new SealedText(keys, 'parley export part');
            const resources = new ExportResources({ files, office, sealed });
            registry.register(resources);
            return resources;
          },
          inject: [ExportFiles, TicketOffice, StateKeys, ResourceRegistry],
        },
      ],
      exports: [ExportDesk, Downloads],
    };
  }
}
