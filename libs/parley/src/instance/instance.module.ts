import { type DynamicModule, Injectable, type InjectionToken, Module, type Provider } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { CurrentAgents, hasRedis } from '#core';
import { ApprovalsModule } from '#approvals';
import { AuditModule, type AuditModuleOptions, type AuditSink, OperationLog } from '#audit';
import { CLOCK_DIFFERENCE, SharedState, StateModule } from '#state';
import {
  type AuditConfig,
  assertSubAgentOptions,
  ConfigVersions,
  isLoopbackHost,
  type LoadedConfig,
  type MongoSinkConfig,
  type ParleyConfig,
} from '#config';
import { DataModule, EmbeddingsModule, Impersonation, PrincipalResolver } from '#data';
import { MongoAuditCollection, MongoConnection } from '#data-mongo';
import {
  AgentIntrospection,
  DispatcherModule,
  KernelModule,
  MetadataAudit,
  MethodExplorer,
  PromptExplorer,
  PromptRegistry,
  ResourceRegistry,
  StateKeysModule,
  SubAgents,
  ToolCallbacks,
  ToolContext,
  ToolExplorer,
} from '#dispatcher';
import { ExportsModule } from '#exports';
import { ProcessTaskQueue, type TaskQueue, TasksModule } from '#tasks';
import { type EnvironmentGates, Policies } from '#policy';
import { StreamingModule, type StreamingModuleOptions, WireModule } from '#streaming';
import { SubscriptionsModule } from '#subscriptions';
import { type KnownNames, NOTHING_OBSERVED, type Observability, TelemetryModule } from '#telemetry';
import { BuiltInToolsModule, ToolRegistry, ToolRunner, ToolsModule } from '#tools';
import { ViewsModule } from '#views';
import { AuthModule } from './auth/auth.module.js';
import { databaseTurnsOf, parseConnectionOf, StoresModule } from './data/stores.module.js';
import { UNGOVERNED_NAMES, UngovernedData } from './data/ungoverned-data.js';
import { overrideProviders } from './overrides.js';
import { builtPage, productVersion } from '../package-files.js';
import type { PluginModule } from './plugins.js';
import { ReadinessModule } from './routes/routes.module.js';

/** The parts of an instance. The code that opened a connection, the state or the queue closes it. */
export interface InstanceOptions {
  readonly loaded: LoadedConfig;
  /** Null: Parse Server only, without direct database access. */
  readonly connection: MongoConnection | null;
  readonly shared: SharedState;
  /** Default: a queue of this process. */
  readonly queue?: TaskQueue;
  /** Default: no telemetry. */
  readonly observed?: Observability;
  readonly gates: EnvironmentGates;
  /** Listeners of all records. Default: none. */
  readonly auditListeners?: readonly AuditSink[];
  /** The application's own `@Tool` and `@ParseClass` providers. */
  readonly features?: readonly Provider[];
  /** Replace the providers of their tokens, in any module. */
  readonly overrides?: readonly Provider[];
  /** Processes tasks only after `TaskService.begin`, because its tools are registered later. Default false. */
  readonly holdsTasks?: boolean;
  /** Modules of the operator with such providers. */
  readonly plugins?: readonly PluginModule[];
}

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
];

/** The configuration and its versions, the policies and agents of each, and the events of the instance. */
@Module({})
class CoreModule {
  static register(loaded: LoadedConfig, { limiters }: SharedState): DynamicModule {
    const versions = new ConfigVersions(loaded, limiters);
    return {
      module: CoreModule,
      imports: [EventEmitterModule.forRoot({ wildcard: true })],
      providers: [
        { provide: ConfigVersions, useValue: versions },
        { provide: CurrentAgents, useExisting: ConfigVersions },
        { provide: Policies, useValue: versions.policies },
      ],
      exports: [ConfigVersions, CurrentAgents, Policies],
    };
  }
}

/** The names that metrics and traces may contain; any other name comes from a client. */
@Injectable()
class RegisteredNames implements KnownNames {
  readonly isTool: KnownNames['isTool'];
  readonly isPrompt: KnownNames['isPrompt'];

  constructor(tools: ToolRegistry, prompts: PromptRegistry) {
    this.isTool = (name) => tools.get(name) !== undefined;
    this.isPrompt = (name) => prompts.get(name) !== undefined;
  }
}

/** Named data access without a policy. */
@Module({})
class UngovernedModule {
  static register(config: ParleyConfig, imports: readonly DynamicModule[]): DynamicModule {
    return {
      module: UngovernedModule,
      imports: [...imports],
      providers: [{ provide: UNGOVERNED_NAMES, useValue: config.ungoverned }, UngovernedData],
      exports: [UngovernedData],
    };
  }
}

/** Exports some providers of the instance to plugins, under their own tokens. */
@Module({})
class PluginAccessModule {
  static register(tokens: readonly InjectionToken[], imports: readonly DynamicModule[]): DynamicModule {
    const aliases = new Map(tokens.map((token) => [token, Symbol(String(token))]));
    const inside: DynamicModule = {
      module: PluginAccessModule,
      imports: [...imports],
      providers: [...aliases].map(([token, provide]) => ({ provide, useExisting: token })),
      exports: [...aliases.values()],
    };
    return {
      module: PluginAccessModule,
      global: true,
      imports: [inside],
      providers: [...aliases].map(([provide, alias]) => ({ provide, useExisting: alias })),
      exports: [...tokens],
    };
  }
}

/** The root of an instance: discovers the tools, prompts and methods of its providers after all of them are created. */
@Module({})
class InstanceModule {}

/**
 * Composes the modules of one instance: the same for the service, for commands, for simulations and for an embedding
 * application. Modules are shared by reference, so two instances in one process share nothing.
 */
export function instanceModule(options: InstanceOptions): DynamicModule {
  const { loaded, connection: mongo, shared, gates, features = [], plugins = [] } = options;
  const { observed = NOTHING_OBSERVED, queue = new ProcessTaskQueue(), holdsTasks: held = false } = options;
  const { config } = loaded;
  const { server, llm, tasks, exports, approvals } = config;

  const state = StateModule.register(shared);
  const core = CoreModule.register(loaded, shared);
  const keys = StateKeysModule.register(stateKeysOf(config), [state]);
  const parse = parseConnectionOf(config.parse);
  const { readHooks } = config.parse;
  const stores = StoresModule.register({ mongo, parse, liveQuery: config.liveQuery, readHooks }, [
    core,
    state,
  ]);
  const data = DataModule.register(databaseTurnsOf(config.database), [core, state, stores]);
  const audit = AuditModule.register(auditOptionsOf(config.audit, options), [state]);
  const ungoverned = UngovernedModule.register(config, [stores, audit]);
  const approving = ApprovalsModule.register({ ...approvals, clientTimeout: server.approvalTimeout }, [
    core,
    state,
    data,
    audit,
  ]);
  const registry = ToolsModule.register(gates);
  const embeddings = EmbeddingsModule.register(
    config.embeddings && { ...config.embeddings, listed: llm.allowedEndpoints !== null },
  );
  const dispatcher = DispatcherModule.register(
    {
      maxRunningCalls: server.maxRunningCalls,
      maxLogSize: loaded.policy.switches.maxLogSize,
      assertSubAgentOptions: (given) => assertSubAgentOptions('sub-agent', given),
    },
    [core, state, stores, data, audit, approving, registry, embeddings],
  );
  const telemetry = TelemetryModule.register(observed, RegisteredNames, [registry, dispatcher]);
  const wire = WireModule.register(server.path, [state]);
  const exporting = ExportsModule.register(
    {
      lifetime: exports.lifetime * 1000,
      maxRows: exports.maxRows,
      maxPerOwner: exports.maxPerPrincipal,
    },
    [core, state, keys, data, audit, dispatcher, wire],
  );
  const builtIn = BuiltInToolsModule.register([registry, dispatcher, exporting, embeddings]);
  const subscriptions = SubscriptionsModule.register(config.subscriptions, [
    core,
    state,
    stores,
    data,
    dispatcher,
    wire,
  ]);
  const tasking = TasksModule.register({ ...tasks, held }, queue, [
    core,
    state,
    keys,
    registry,
    dispatcher,
    telemetry,
  ]);
  const kernel = KernelModule.register(
    {
      version: productVersion(),
      questionTimeout: server.approvalTimeout,
      // Without Redis one process seals and opens.
      clockDifference: hasRedis(config.redis) ? CLOCK_DIFFERENCE : 0,
    },
    [state, keys, dispatcher, tasking, wire, subscriptions],
  );
  const views = ViewsModule.register(() => builtPage('views'), [dispatcher]);
  const auth = AuthModule.register([core, state, stores, audit, wire]);
  const streaming = StreamingModule.register(streamingOptionsOf(config), [
    state,
    wire,
    kernel,
    auth,
    exporting,
    telemetry,
  ]);
  const readiness = ReadinessModule.register([state, stores, audit, tasking, streaming]);
  const forPlugins = PluginAccessModule.register(OFFERED_PROVIDERS, [
    registry,
    dispatcher,
    stores,
    data,
    ungoverned,
  ]);
  const root: DynamicModule = {
    module: InstanceModule,
    imports: [
      DiscoveryModule,
      ...plugins,
      forPlugins,
      core,
      state,
      keys,
      stores,
      data,
      audit,
      ungoverned,
      approving,
      registry,
      dispatcher,
      telemetry,
      wire,
      exporting,
      embeddings,
      builtIn,
      subscriptions,
      tasking,
      kernel,
      views,
      auth,
      streaming,
      readiness,
    ],
    providers: [ToolContext, ToolExplorer, PromptExplorer, MethodExplorer, ...features],
  };
  return overrideProviders(root, options.overrides ?? []);
}

/** The operator's keys, the current one first; null: one that all replicas share. */
function stateKeysOf({
  server: { stateKey, previousStateKeys },
}: Pick<ParleyConfig, 'server'>): readonly [string, ...string[]] | null {
  return stateKey === null ? null : [stateKey, ...previousStateKeys];
}

function auditOptionsOf(
  config: AuditConfig,
  { connection, auditListeners = [] }: Pick<InstanceOptions, 'connection' | 'auditListeners'>,
): AuditModuleOptions {
  return {
    ...config,
    sinks: config.sinks.map((sink) =>
      sink.kind === 'mongodb' ? { ...sink, store: auditCollectionOf(sink, connection) } : sink,
    ),
    listeners: auditListeners,
  };
}

function auditCollectionOf(
  { uri, database, collection, days }: MongoSinkConfig,
  connection: MongoConnection | null,
): MongoAuditCollection {
  const lifetime = days === null ? null : days * 86_400_000;
  if (uri !== null) {
    const own = new MongoConnection({ uri, database });
    return new MongoAuditCollection({ connection: own, collection, lifetime, ownsConnection: true });
  }
  if (!connection) throw new TypeError('audit.sinks: there is no database to share a server with');
  return new MongoAuditCollection({ connection, database, collection, lifetime, ownsConnection: false });
}

function streamingOptionsOf({ server, auth }: ParleyConfig): StreamingModuleOptions {
  // Without rules, application code authenticates the caller, perhaps by a cookie, which browsers send automatically.
  const asksNothing =
    (auth.length === 0 || auth.some((rule) => 'anonymous' in rule)) && server.requireCustomHeader === null;
  return {
    path: server.path,
    maxBodySize: server.maxBodySize,
    allowedOrigins: server.allowedOrigins,
    allowedHosts: server.allowedHosts,
    requireCustomHeader: server.requireCustomHeader,
    requireContentLength: server.requireContentLength,
    sessions: server.sessions,
    heartbeatInterval: server.heartbeatInterval * 1000,
    maxConcurrentDispatchers: server.maxConcurrentDispatchers,
    loopbackHosts: isLoopbackHost(server.host),
    loopbackOrigins: asksNothing,
    requestRateLimit: server.requestRateLimit,
    preAuthRateLimit: server.preAuthRateLimit,
  };
}
