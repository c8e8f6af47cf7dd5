import type { Provider } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { AuditSink } from '#audit';
import type { SharedState } from '#cluster';
import { GovernedRecordsSource } from '#data';
import { DataBudgets, ResourceRegistry, SealedText } from '#dispatcher';
import {
  ExportDownloads,
  ExportFiles,
  ExportJournal,
  ExportResources,
  type ExportSettings,
  ExportWalk,
  TicketOffice,
} from '#exports';
import type { Policies } from '#policy';
import { Downloads } from '#streaming';
import { ExportDesk, ToolRunner } from '#tools';
import type { LoadedConfig } from '#config';
import { stateKeys } from './input-rounds.js';
import type { ServedAt } from './served-at.js';

export interface ExportParts {
  readonly config: LoadedConfig['config'];
  readonly policies: Policies;
  readonly shared: SharedState;
  readonly servedAt: ServedAt;
}

/** Exports that are fetched after they were asked for, over HTTP and as resources. */
export function exportProviders({ config, policies, shared, servedAt }: ExportParts): Provider[] {
  const { lifetime, maxRows, maxPerPrincipal } = config.exports;
  const settings: ExportSettings = { lifetime: lifetime * 1000, maxRows, maxPerOwner: maxPerPrincipal };
  const office = new TicketOffice(shared.exports, settings, () => servedAt.downloads);
  const sealed = new SealedText(stateKeys(config.server, shared), 'parley export part');
  return [
    { provide: ExportDesk, useValue: office },
    {
      provide: ExportFiles,
      useFactory: (
        runner: ToolRunner,
        records: GovernedRecordsSource,
        audit: AuditSink,
        events: EventEmitter2,
        budgets: DataBudgets,
      ) =>
        new ExportFiles({
          office,
          runner,
          policies,
          walk: new ExportWalk(records, settings, budgets),
          journal: new ExportJournal(audit, policies),
          onCanary: (phrase, { agent }, className) => {
            events.emit('parse.agent.prompt_injection_detected', {
              tool: 'export_read',
              phrase,
              agent_id: agent.agentId,
              class_name: className,
            });
          },
        }),
      inject: [ToolRunner, GovernedRecordsSource, AuditSink, EventEmitter2, DataBudgets],
    },
    {
      provide: Downloads,
      useFactory: (files: ExportFiles) => new ExportDownloads(files, office),
      inject: [ExportFiles],
    },
    {
      provide: ExportResources,
      useFactory: (files: ExportFiles, registry: ResourceRegistry) => {
        const resources = new ExportResources({ files, office, sealed });
        registry.register(resources);
        return resources;
      },
      inject: [ExportFiles, ResourceRegistry],
    },
  ];
}
