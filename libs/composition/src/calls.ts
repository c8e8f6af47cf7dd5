import type { Provider } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { AuditSink } from '#audit';
import type { SharedState } from '#cluster';
import { GovernedRecordsSource, GovernedSearchSource, GovernedWritesSource } from '#data';
import {
  Approver,
  CallJournal,
  createPipeline,
  DataBudgets,
  ParleyToolRunner,
  RunningCalls,
  ToolCallbacks,
} from '#dispatcher';
import type { EnvironmentGates, Policies } from '#policy';
import { CallableMethods, PermittedTools, ToolRegistry, ToolRunner } from '#tools';

export interface CallParts {
  readonly policies: Policies;
  readonly gates: EnvironmentGates;
  readonly shared: SharedState;
  /** Calls of one principal that run at once; null: unbounded. */
  readonly maxRunningCalls: number | null;
}

/** How a tool is called: the pipeline of every gate, and what a call may use up. */
export function callProviders({ policies, gates, shared, maxRunningCalls }: CallParts): Provider[] {
  return [
    {
      provide: DataBudgets,
      useFactory: () => new DataBudgets(shared.budgets, (agent) => policies.of(agent).tenantBudget),
    },
    { provide: RunningCalls, useFactory: () => new RunningCalls({ perPrincipal: maxRunningCalls }) },
    {
      provide: ToolRunner,
      useFactory: (
        registry: ToolRegistry,
        records: GovernedRecordsSource,
        search: GovernedSearchSource,
        writes: GovernedWritesSource,
        methods: CallableMethods,
        approver: Approver,
        events: EventEmitter2,
        callbacks: ToolCallbacks,
        journal: CallJournal,
        budgets: DataBudgets,
        audit: AuditSink,
        running: RunningCalls,
      ) =>
        new ParleyToolRunner({
          registry,
          policies,
          records,
          search,
          writes,
          gates,
          journal,
          budgets,
          methods,
          pipeline: createPipeline({
            registry,
            audit,
            policies,
            gates,
            events,
            methods,
            callbacks,
            budgets,
            approver,
            running,
          }),
        }),
      inject: [
        ToolRegistry,
        GovernedRecordsSource,
        GovernedSearchSource,
        GovernedWritesSource,
        CallableMethods,
        Approver,
        EventEmitter2,
        ToolCallbacks,
        CallJournal,
        DataBudgets,
        AuditSink,
        RunningCalls,
      ],
    },
    { provide: PermittedTools, useExisting: ToolRunner },
  ];
}
