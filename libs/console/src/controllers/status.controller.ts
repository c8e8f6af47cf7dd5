import { Get, Inject, Query } from '@nestjs/common';
import type { SinkState } from '#audit';
import { ExportOverview, type ListedExport } from '#exports';
import { createValidationPipe } from '#streaming';
import { type ListedTask, TaskOverview } from '#tasks';
import { CurrentOperator, OperatorController, WithoutSharedState } from '../console.guards.js';
import type { Operator } from '../operator-gate.js';
import { ReplicaStates, type ServiceState } from '../replica-states.js';
import { PageQuery } from './page-query.js';

/** Status of a replica for operators. */
export interface ServiceReport {
  readonly version: string;
  readonly node: string;
  /** ISO 8601. */
  readonly started_at: string;
  readonly replica: string;
  /** `replicas`: the state is shared by several processes. */
  readonly shared_state: 'process' | 'replicas';
  readonly memory_bytes: number;
  readonly policy: {
    readonly version: string;
    readonly classes: number;
    readonly agents: number;
    /** Number of the configuration version: 1 at the start, incremented by each reload. */
    readonly number: number;
    readonly loaded_at: string;
    /** Whether it lets an agent do more than the version before it; null: there was none, or it is not compared yet. */
    readonly widened: boolean | null;
    /** The latest configuration file that was refused, and why; null when there was none. */
    readonly last_refused: { readonly at: string; readonly faults: readonly string[] } | null;
  };
  /** Configured external services; empty when there are none. */
  readonly dependencies: Readonly<Record<string, 'up' | 'down'>>;
  /** Audit sinks by name; empty when there are none. */
  readonly sinks: Readonly<Record<string, SinkState>>;
  /** It finishes running calls and accepts no new ones. */
  readonly draining: boolean;
  readonly streams: { readonly calls: number; readonly listening: number; readonly console: number };
}

/** How all replicas are, for one operator. */
export interface StateAnswer extends ServiceState {
  /** The operator may read what the replica knows that answers, and do nothing: `Operator.degraded`. */
  readonly degraded: boolean;
}

/** Reads the status of this replica. Never fails for a dependency that is down. */
export abstract class ServiceStatus {
  abstract read(): Promise<ServiceReport>;
}

/** The status of the replica that answers and of all, and tasks and exports of all principals, the latest first. */
@OperatorController('console/api')
export class StatusController {
  constructor(
    @Inject(ServiceStatus) private readonly status: ServiceStatus,
    @Inject(ReplicaStates) private readonly states: ReplicaStates,
    @Inject(TaskOverview) private readonly tasks: TaskOverview,
    @Inject(ExportOverview) private readonly exports: ExportOverview,
  ) {}

  @Get('status')
  @WithoutSharedState()
  read(): Promise<ServiceReport> {
    return this.status.read();
  }

  @Get('state')
  @WithoutSharedState()
  async readAll(@CurrentOperator() { degraded }: Operator): Promise<StateAnswer> {
    return { ...(await this.states.read()), degraded };
  }

  @Get('tasks')
  async latestTasks(
    @Query(createValidationPipe(PageQuery)) { limit }: PageQuery,
  ): Promise<{ readonly tasks: readonly ListedTask[] }> {
    return { tasks: await this.tasks.latest(limit) };
  }

  @Get('exports')
  async latestExports(
    @Query(createValidationPipe(PageQuery)) { limit }: PageQuery,
  ): Promise<{ readonly exports: readonly ListedExport[] }> {
    return { exports: await this.exports.latest(limit) };
  }
}
