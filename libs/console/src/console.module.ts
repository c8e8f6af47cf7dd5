import { hostname } from 'node:os';
import {
  type DynamicModule,
  type InjectionToken,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  type Provider,
} from '@nestjs/common';
import { ApprovalService } from '#approvals';
import { AuditRecorder, AuditSink, AuditTrail, RecentAuditTrail } from '#audit';
import { Authenticator } from '#auth';
import { OperatorChanges } from '#changes';
import { ConfigVersions, type LoadedConfig } from '#config';
import { provideFromInstance } from '#core';
import { DataBudgets, MetadataAudit, StateKeys } from '#dispatcher';
import { ExportOverview } from '#exports';
import { type EnvironmentGates, Policies } from '#policy';
import { SharedState, SuspendedAgents } from '#state';
import { McpEdge } from '#streaming';
import { TaskOverview } from '#tasks';
import { DeclaredMethods, ToolEnvironment } from '#tools';
import { CallHistory } from './call-history.js';
import type { CallStatistics } from './call-statistics.js';
import { createOperatorRights, openOidcSetting } from './configured-operators.js';
import { ConfiguredSimulations, type SimulationsOptions } from './configured-simulations.js';
import { SecurityHeadersMiddleware } from './console.guards.js';
import { AgentsController } from './controllers/agents.controller.js';
import { ApprovalsController } from './controllers/approvals.controller.js';
import { AuditController } from './controllers/audit.controller.js';
import { ChangesController } from './controllers/changes.controller.js';
import { ExplainController, SimulationService } from './controllers/explain.controller.js';
import { LiveController, LiveStreams } from './controllers/live.controller.js';
import {
  HeadController,
  OtherPathsController,
  PageController,
  PageFiles,
  PageFilesController,
} from './controllers/page.controller.js';
import { OverviewController } from './controllers/overview.controller.js';
import { PolicyController } from './controllers/policy.controller.js';
import { OidcCallbackController, SessionController } from './controllers/session.controller.js';
import { StatusController } from './controllers/status.controller.js';
import { TrialController } from './controllers/trial.controller.js';
import { findEarlierVersion } from './earlier-version.js';
import { LiveRecords } from './live-records.js';
import { OIDC_SETTING, OidcSignIn } from './oidc-sign-in.js';
import { OPERATOR_RIGHTS, OperatorGate, OperatorNotes } from './operator-gate.js';
import { OperatorSessions } from './operator-sessions.js';
import { Overviews } from './overview.js';
import { ReplicaStates } from './replica-states.js';
import { ReplicaStatus, ServiceStatus, type StatusDependencies } from './replica-status.js';
import { SignIn } from './sign-in.js';

/** What the service around it gives the console. */
export interface ConsoleHost {
  /** Receives all records of this process. */
  readonly live: LiveRecords;
  /** Counts all calls of this process. */
  readonly statistics: CallStatistics;
  /** The version of the product. */
  readonly product: string;
  /** With `index.html`, scripts and styles of the page. */
  readonly folder: string;
  readonly readiness: StatusDependencies['readiness'];
  /** Simulations of a version of the configuration. */
  readonly simulations: Pick<
    SimulationsOptions<ConfigVersions['current']>,
    'open' | 'compare' | 'identityOf' | 'rehearse'
  > & {
    /** Reads what an earlier start recorded. Null: the configuration is not in a file. @throws ConfigError */
    readonly recall: ((text: string) => LoadedConfig) | null;
  };
}

const CONSOLE_HOST = Symbol('host of the console');

/** What the console takes from the instance, with `provideFromInstance`. */
export const CONSOLE_IMPORTS: readonly InjectionToken[] = [
  ApprovalService,
  AuditRecorder,
  AuditSink,
  AuditTrail,
  Authenticator,
  ConfigVersions,
  DataBudgets,
  DeclaredMethods,
  McpEdge,
  MetadataAudit,
  OperatorChanges,
  Policies,
  RecentAuditTrail,
  SharedState,
  StateKeys,
  SuspendedAgents,
  ToolEnvironment,
];

const nameReplica = ({ current }: ConfigVersions): string => current.config.audit.replica ?? hostname();

/** What is made of the service around the console. */
const HOSTED_PROVIDERS: readonly Provider[] = [
  { provide: LiveRecords, useFactory: ({ live }: ConsoleHost) => live, inject: [CONSOLE_HOST] },
  {
    provide: PageFiles,
    useFactory: ({ folder }: ConsoleHost) => new PageFiles(folder),
    inject: [CONSOLE_HOST],
  },
  {
    provide: CallHistory,
    useFactory: ({ statistics }: ConsoleHost, shared: SharedState) => new CallHistory(statistics, shared),
    inject: [CONSOLE_HOST, SharedState],
  },
  {
    provide: Overviews,
    useFactory: ({ live: { replica } }: ConsoleHost, history: CallHistory, { reach }: SharedState) =>
      new Overviews(history, { replica, reach }),
    inject: [CONSOLE_HOST, CallHistory, SharedState],
  },
  {
    provide: SimulationService,
    useFactory: (
      { simulations }: ConsoleHost,
      versions: ConfigVersions,
      methods: DeclaredMethods,
      environment: EnvironmentGates,
      trail: AuditTrail,
    ) => {
      const { recall, ...hosted } = simulations;
      return new ConfiguredSimulations({
        ...hosted,
        versions,
        findEarlier: (first) => findEarlierVersion(trail, first, recall),
        methods: { methods, environment },
      });
    },
    inject: [CONSOLE_HOST, ConfigVersions, DeclaredMethods, ToolEnvironment, AuditTrail],
  },
  {
    provide: ServiceStatus,
    useFactory: (
      { product, readiness, live: { replica } }: ConsoleHost,
      versions: ConfigVersions,
      edge: McpEdge,
      consoleStreams: LiveStreams,
      { reach }: SharedState,
      sinks: AuditRecorder,
      simulations: SimulationService,
      suspended: SuspendedAgents,
    ) =>
      new ReplicaStatus({
        product,
        versions,
        readiness,
        sinks,
        suspended,
        widened: () => simulations.widened(),
        edge,
        consoleStreams,
        reach,
        replica,
      }),
    inject: [
      CONSOLE_HOST,
      ConfigVersions,
      McpEdge,
      LiveStreams,
      SharedState,
      AuditRecorder,
      SimulationService,
      SuspendedAgents,
    ],
  },
  {
    provide: ReplicaStates,
    useFactory: (
      { live: { replica } }: ConsoleHost,
      status: ServiceStatus,
      versions: ConfigVersions,
      { bus, reach }: SharedState,
    ) => new ReplicaStates(status, bus, { replica, name: nameReplica(versions), reach }),
    inject: [CONSOLE_HOST, ServiceStatus, ConfigVersions, SharedState],
  },
];

/** The operator console: its page, and the API of the page. */
@Module({
  // The first route of a path answers.
  controllers: [
    PageController,
    PageFilesController,
    HeadController,
    SessionController,
    OidcCallbackController,
    LiveController,
    OverviewController,
    ApprovalsController,
    AgentsController,
    ChangesController,
    ExplainController,
    PolicyController,
    TrialController,
    AuditController,
    StatusController,
    OtherPathsController,
  ],
  providers: [
    ...CONSOLE_IMPORTS.map(provideFromInstance),
    ...HOSTED_PROVIDERS,
    { provide: OPERATOR_RIGHTS, useFactory: createOperatorRights, inject: [ConfigVersions] },
    OperatorNotes,
    OperatorSessions,
    OperatorGate,
    SignIn,
    {
      provide: OIDC_SETTING,
      useFactory: ({ current }: ConfigVersions) => openOidcSetting(current.config),
      inject: [ConfigVersions],
    },
    OidcSignIn,
    LiveStreams,
    TaskOverview,
    ExportOverview,
  ],
})
export class ConsoleModule implements NestModule {
  /** @param taken provides `CONSOLE_IMPORTS` */
  static register(host: ConsoleHost, taken: DynamicModule): DynamicModule {
    return {
      module: ConsoleModule,
      imports: [taken],
      providers: [{ provide: CONSOLE_HOST, useValue: host }],
    };
  }

  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(SecurityHeadersMiddleware).forRoutes('console/*rest');
  }
}
