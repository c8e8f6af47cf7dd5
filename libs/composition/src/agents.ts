import type { Provider } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { ArgumentDigest, AuditSink, OperationLog } from '#audit';
import { GovernedRecordsSource, PrincipalResolver, SchemaCatalogue } from '#data';
import {
  AgentIntrospection,
  CallJournal,
  FilterNames,
  DataBudgets,
  MetadataAudit,
  ReadAccounts,
  RunningCalls,
  RecordsSource,
  SubAgents,
  ToolCallbacks,
} from '#dispatcher';
import { assertSubAgentOptions } from '#config';
import { type EnvironmentGates, Policies } from '#policy';
import { CallableMethods, PermittedTools, ToolRegistry } from '#tools';

/** What an application and its operator may inject besides tools: sub-agents, introspection, callbacks, the operation log. */
export function agentProviders(policies: Policies, gates: EnvironmentGates): Provider[] {
  return [
    ToolCallbacks,
    { provide: OperationLog, useFactory: () => new OperationLog(policies.current.switches.maxLogSize) },
    {
      provide: CallJournal,
      useFactory: (
        audit: AuditSink,
        digest: ArgumentDigest,
        log: OperationLog,
        callbacks: ToolCallbacks,
        events: EventEmitter2,
      ) => new CallJournal({ policies, audit, digest, log, callbacks, events }),
      inject: [AuditSink, ArgumentDigest, OperationLog, ToolCallbacks, EventEmitter2],
    },
    {
      provide: ReadAccounts,
      useFactory: (
        records: RecordsSource,
        audit: AuditSink,
        budgets: DataBudgets,
        journal: CallJournal,
        running: RunningCalls,
      ) => new ReadAccounts({ records, audit, budgets, journal, running }),
      inject: [RecordsSource, AuditSink, DataBudgets, CallJournal, RunningCalls],
    },
    {
      provide: FilterNames,
      useFactory: (registry: ToolRegistry, catalogue: SchemaCatalogue) =>
        new FilterNames(registry, catalogue),
      inject: [ToolRegistry, SchemaCatalogue],
    },
    {
      provide: SubAgents,
      useFactory: (identities: PrincipalResolver, names: FilterNames, events: EventEmitter2) =>
        new SubAgents(identities, names, policies, events, (options) =>
          assertSubAgentOptions('sub-agent', options),
        ),
      inject: [PrincipalResolver, FilterNames, EventEmitter2],
    },
    {
      provide: AgentIntrospection,
      useFactory: (
        registry: ToolRegistry,
        tools: PermittedTools,
        methods: CallableMethods,
        records: GovernedRecordsSource,
      ) => new AgentIntrospection({ policies, registry, tools, methods, gates, records }),
      inject: [ToolRegistry, PermittedTools, CallableMethods, GovernedRecordsSource],
    },
    {
      provide: MetadataAudit,
      useFactory: (catalogue: SchemaCatalogue) => new MetadataAudit(policies, catalogue),
      inject: [SchemaCatalogue],
    },
  ];
}
