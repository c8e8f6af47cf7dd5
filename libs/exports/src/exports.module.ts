import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { AuditSink } from '#audit';
import { SharedState } from '#cluster';
import { GovernedRecordsSource } from '#data';
import { DataBudgets, ResourceRegistry, SealedText, StateKeys } from '#dispatcher';
import { Policies } from '#policy';
import { Downloads, ServedAt } from '#streaming';
import { ExportDesk, ToolRunner } from '#tools';
import { ExportDownloads, ExportResources } from './export-deliveries.js';
import { ExportFiles } from './export-files.js';
import { ExportJournal } from './export-journal.js';
import { type ExportSettings, TicketOffice } from './export-tickets.js';
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
        {
          provide: ExportWalk,
          useFactory: (records: GovernedRecordsSource, budgets: DataBudgets) =>
            new ExportWalk(records, settings, budgets),
          inject: [GovernedRecordsSource, DataBudgets],
        },
        {
          provide: ExportJournal,
          useFactory: (audit: AuditSink, policies: Policies) => new ExportJournal(audit, policies),
          inject: [AuditSink, Policies],
        },
        {
          provide: ExportFiles,
          useFactory: (
            office: TicketOffice,
            runner: ToolRunner,
            walk: ExportWalk,
            journal: ExportJournal,
            policies: Policies,
            events: EventEmitter2,
          ) =>
            new ExportFiles({
              office,
              runner,
              policies,
              walk,
              journal,
              onCanary: (phrase, { agent }, className) => {
                events.emit('parse.agent.prompt_injection_detected', {
                  tool: 'export_read',
                  phrase,
                  agent_id: agent.agentId,
                  class_name: className,
                });
              },
            }),
          inject: [TicketOffice, ToolRunner, ExportWalk, ExportJournal, Policies, EventEmitter2],
        },
        {
          provide: Downloads,
          useFactory: (files: ExportFiles, office: TicketOffice) => new ExportDownloads(files, office),
          inject: [ExportFiles, TicketOffice],
        },
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
