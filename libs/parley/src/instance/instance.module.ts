import { type DynamicModule, Global, Injectable, Module, type Provider } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { CoreModule, CurrentAgents, toInstanceProviders } from '#core';
import { ApprovalsModule, ConfiguredApprover } from '#approvals';
import { AuditModule, OperationLog } from '#audit';
import { AuthModule, AuthVersions } from '#auth';
import { ChangeSetsModule, ChangesModule } from '#changes';
import { SessionStreams, SharedState, StateModule } from '#state';
import { ConfigVersions } from '#config';
import {
  DatabaseTurns,
  DataModule,
  Impersonation,
  PrincipalResolver,
  SchemaCatalogue,
  StoresModule,
  UserSessions,
} from '#data';
import { MongoConnection } from '#data-mongo';
import { ParseConnection } from '#data-parse';
import {
  AgentIntrospection,
  Approver,
  DispatcherModule,
  KernelModule,
  ListChanges,
  MetadataAudit,
  MethodExplorer,
  PromptExplorer,
  ResourceExplorer,
  PromptRegistry,
  ResourceRegistry,
  ResourceSubscriptions,
  SubAgents,
  TaskStore,
  ToolCallbacks,
  ToolContext,
  ToolExplorer,
} from '#dispatcher';
import { ExportsModule } from '#exports';
import { ProcessTaskQueue, StoredTaskService, TaskQueue, TasksModule } from '#tasks';
import { Policies, PolicyModule } from '#policy';
import { Downloads, ListeningStreams, ReplicatedListChanges, StreamingModule, WireModule } from '#streaming';
import { ChangeSources, SubscriptionManager, SubscriptionsModule } from '#subscriptions';
import { KNOWN_NAMES, type KnownMetricNames, TelemetryModule } from '#telemetry';
import {
  BuiltInToolsModule,
  Changes,
  ExportStore,
  PermittedTools,
  ToolEnvironment,
  ToolRegistry,
  ToolRunner,
  ToolsModule,
} from '#tools';
import { ViewsModule } from '#views';
import { ConfigurationModule } from './configuration.module.js';
import {
  chooseAdapters,
  ConnectionsModule,
  createDatabaseTurns,
  openChangeSources,
  createParseConnection,
  SessionWatchModule,
  userSessionsOf,
} from './data/adapters.module.js';
import { Conversations, ConversationsModule } from './conversations.js';
import { UngovernedData } from './data/ungoverned-data.js';
import { type InstanceOptions, optionProviders } from './instance-options.js';
import { ReadinessModule } from './routes/routes.module.js';

/**
 * The providers that plugins and embedding applications may inject. All others are invisible to them, so no plugin reads
 * an ungoverned row.
 */
export const OFFERED_PROVIDERS: readonly (abstract new (...args: never[]) => unknown)[] = [
  ToolRegistry,
  PromptRegistry,
  ResourceRegistry,
  UngovernedData,
  ToolRunner,
  SubAgents,
  AgentIntrospection,
  MetadataAudit,
  OperationLog,
  Impersonation,
  PrincipalResolver,
  ToolCallbacks,
  Conversations,
];

/** The names that metrics and traces may contain; any other name comes from a client. */
@Injectable()
class RegisteredNames implements KnownMetricNames {
  readonly isTool: KnownMetricNames['isTool'];
  readonly isPrompt: KnownMetricNames['isPrompt'];
  readonly isAgent: KnownMetricNames['isAgent'];

  constructor(tools: ToolRegistry, prompts: PromptRegistry, agents: ConfigVersions) {
    this.isTool = (name) => tools.get(name) !== undefined;
    this.isPrompt = (name) => prompts.get(name) !== undefined;
    this.isAgent = (name) => agents.findDefinition(name) !== undefined;
  }
}

/** Named data access without a policy. */
@Module({ imports: [StoresModule, AuditModule], providers: [UngovernedData], exports: [UngovernedData] })
class UngovernedModule {}

const PLUGIN_ALIASES = new Map(OFFERED_PROVIDERS.map((token) => [token, Symbol(token.name)]));

/** The offered providers under other names, because a module exports what it imports only as a whole. */
@Module({
  imports: [ToolsModule, DispatcherModule, StoresModule, DataModule, UngovernedModule, ConversationsModule],
  providers: [...PLUGIN_ALIASES].map(([token, provide]) => ({ provide, useExisting: token })),
  exports: [...PLUGIN_ALIASES.values()],
})
class PluginAliasesModule {}

/** Exports some providers of the instance to plugins, under their own tokens. */
@Global()
@Module({
  imports: [PluginAliasesModule],
  providers: [...PLUGIN_ALIASES].map(([provide, alias]) => ({ provide, useExisting: alias })),
  exports: [...OFFERED_PROVIDERS],
})
class PluginAccessModule {}

/**
 * What differs between instances: options and opened resources, the adapters, implementations of ports that a lib below
 * declares, and overrides of them. It is global, so every token is a symbol that no plugin can name.
 */
@Module({
  imports: [
    ConfigurationModule,
    ApprovalsModule,
    AuditModule,
    ChangesModule,
    ChangeSetsModule,
    ConnectionsModule,
    DispatcherModule,
    ExportsModule,
    SessionWatchModule,
    StateModule,
    StoresModule,
    SubscriptionsModule,
    TasksModule,
    ToolsModule,
    WireModule,
  ],
  providers: [{ provide: KNOWN_NAMES, useClass: RegisteredNames }],
  exports: [KNOWN_NAMES],
})
class OptionsModule {
  static register(options: InstanceOptions): DynamicModule {
    const { connection: mongo, shared, gates, queue = new ProcessTaskQueue(), overrides = [] } = options;
    const { config } = options.loaded;
    const parse = createParseConnection(config.parse);
    const ports: Provider[] = [
      { provide: SharedState, useValue: shared },
      { provide: MongoConnection, useValue: mongo },
      { provide: ParseConnection, useValue: parse },
      { provide: TaskQueue, useValue: queue },
      { provide: ToolEnvironment, useValue: gates },
      { provide: DatabaseTurns, useValue: createDatabaseTurns(config.database) },
      { provide: UserSessions, useValue: userSessionsOf(mongo) },
      {
        provide: ChangeSources,
        useFactory: (catalogue: SchemaCatalogue, versions: ConfigVersions) =>
          openChangeSources(mongo, config.liveQuery, catalogue, versions),
        inject: [SchemaCatalogue, ConfigVersions],
      },
      { provide: CurrentAgents, useExisting: ConfigVersions },
      { provide: Policies, useFactory: ({ policies }: ConfigVersions) => policies, inject: [ConfigVersions] },
      { provide: AuthVersions, useFactory: toAuthVersions, inject: [ConfigVersions] },
      { provide: Approver, useExisting: ConfiguredApprover },
      { provide: TaskStore, useExisting: StoredTaskService },
      { provide: ListChanges, useExisting: ReplicatedListChanges },
      { provide: SessionStreams, useExisting: ListeningStreams },
      { provide: ResourceSubscriptions, useExisting: SubscriptionManager },
      { provide: ExportStore, useExisting: ExportStore },
      { provide: Changes, useExisting: Changes },
      { provide: Downloads, useExisting: Downloads },
      { provide: PermittedTools, useExisting: PermittedTools },
    ];
    const providers = [
      ...optionProviders(options),
      ...toInstanceProviders([...ports, ...chooseAdapters({ parse }), ...overrides]),
    ];
    return {
      module: OptionsModule,
      global: true,
      providers,
      exports: [...new Set(providers.map(({ provide }) => provide))],
    };
  }
}

const toAuthVersions = (versions: ConfigVersions): AuthVersions => versions;

/** The modules of every instance, beside its options and plugins. */
const MODULES = [
  PluginAccessModule,
  ConfigurationModule,
  CoreModule,
  StateModule,
  PolicyModule,
  StoresModule,
  DataModule,
  AuditModule,
  ApprovalsModule,
  ToolsModule,
  DispatcherModule,
  TelemetryModule,
  WireModule,
  ChangesModule,
  ExportsModule,
  BuiltInToolsModule,
  SubscriptionsModule,
  TasksModule,
  KernelModule,
  ViewsModule,
  AuthModule,
  StreamingModule,
  ReadinessModule,
];

/**
 * One instance: the same for the service, for commands, for simulations and for an embedding application. Each has a
 * container of its own, so two instances in one process share nothing. Discovers the tools, prompts and methods of its
 * providers after all of them are created.
 */
@Module({
  imports: [DiscoveryModule],
  providers: [ToolContext, ToolExplorer, PromptExplorer, ResourceExplorer, MethodExplorer],
})
export class InstanceModule {
  static forRoot(options: InstanceOptions): DynamicModule {
    const { features = [], plugins = [] } = options;
    const events = EventEmitterModule.forRoot({ wildcard: true });
    return {
      module: InstanceModule,
      imports: [events, OptionsModule.register(options), ...plugins, ...MODULES],
      providers: [...features],
    };
  }
}
