import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { type AuditSink, OperationLog } from '#audit';
import type { SharedState } from '#cluster';
import type { LoadedConfig } from '#config';
import { Impersonation, PrincipalResolver } from '#data';
import type { MongoConnection } from '#data-mongo';
import {
  AgentIntrospection,
  MetadataAudit,
  PromptRegistry,
  ResourceRegistry,
  SubAgents,
  ToolCallbacks,
} from '#dispatcher';
import { ProcessTaskQueue, TaskQueue } from '#jobs';
import { type EnvironmentGates, Policies } from '#policy';
import { ToolRegistry, ToolRunner } from '#tools';
import { agentProviders } from './agents.js';
import { approvalProviders } from './approvals.js';
import { auditProviders } from './audit.js';
import { authProviders } from './auth.js';
import { callProviders } from './calls.js';
import { dataProviders, databaseTurnsOf, parseConnectionOf } from './data-stores.js';
import { Editions } from './editions/editions.js';
import { exportProviders } from './exports.js';
import { governedDataProviders } from './governed-data.js';
import { neighbourProviders } from './http/service-neighbours.js';
import { Readiness } from './http/readiness.js';
import { mcpProviders } from './mcp.js';
import { NOTHING_OBSERVED, type Observability, telemetryProviders } from './observe/observability.js';
import { oauthProviders } from './oauth.js';
import type { PluginModule } from './plugins/plugin-modules.js';
import { searchProviders } from './search.js';
import { ServedAt } from './served-at.js';
import { sharedStateProviders } from './shared-state.js';
import { subscriptionProviders } from './subscriptions.js';
import { taskProviders } from './tasks.js';
import { toolProviders } from './tools.js';
import { wireProviders } from './wire.js';
import { UngovernedData, ungovernedProvider } from './ungoverned-data.js';
import { WrittenClasses } from './written-classes.js';

export interface ServiceParts {
  readonly loaded: LoadedConfig;
  /** Null: there is a Parse Server, and no direct access beside it. */
  readonly connection: MongoConnection | null;
  readonly shared: SharedState;
  /** Default: one of this process. */
  readonly queue?: TaskQueue;
  /** Default: nothing is measured. */
  readonly observed?: Observability;
  readonly gates: EnvironmentGates;
  /** Hear of everything that is recorded. Default: nobody. */
  readonly auditListeners?: readonly AuditSink[];
  /** The application's own `@Tool` and `@ParseClass` providers. */
  readonly features?: readonly Provider[];
  /** Take the place of what is bound here. */
  readonly replaced?: readonly Provider[];
  /** Works on tasks only when `TaskService.begin` is called: its tools are registered later. Default false. */
  readonly holdsTasks?: boolean;
  /** Modules with such providers. */
  readonly plugins?: readonly PluginModule[];
}

/** The composition root of the service: binds ports to adapters and holds no rules. */
@Module({})
export class AppModule {
  static compose(parts: ServiceParts): DynamicModule {
    const { connection, shared, gates, features = [], plugins = [], observed = NOTHING_OBSERVED } = parts;
    const queue = parts.queue ?? new ProcessTaskQueue();
    const editions = new Editions(parts.loaded, shared);
    const { policies } = editions;
    // What only a start reads; the rest is asked of the edition that a call was admitted under.
    const { config } = parts.loaded;
    const written = new WrittenClasses(shared.bus);
    const servedAt = new ServedAt(config.server.path);
    return {
      module: AppModule,
      imports: [DiscoveryModule, EventEmitterModule.forRoot({ wildcard: true }), ...plugins],
      // For the providers of plugins.
      global: true,
      exports: [
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
      ],
      providers: [
        ...toolProviders(gates),
        ...features,
        { provide: Editions, useValue: editions },
        { provide: Policies, useValue: policies },
        { provide: ServedAt, useValue: servedAt },
        ...dataProviders({ mongo: connection, parse: parseConnectionOf(config.parse) }, written),
        ...approvalProviders(config, shared),
        ...auditProviders({
          config: config.audit,
          connection,
          shared,
          listeners: parts.auditListeners ?? [],
        }),
        ...agentProviders(policies, gates),
        ...sharedStateProviders(shared),
        ...telemetryProviders(observed),
        { provide: TaskQueue, useValue: queue },
        Readiness,
        ...neighbourProviders(),
        ...wireProviders(shared),
        ...subscriptionProviders(config, connection, shared),
        ...taskProviders({ config, configured: editions, shared, queue, held: parts.holdsTasks ?? false }),
        ...exportProviders({ config, policies, shared, servedAt }),
        ...oauthProviders(editions, shared, servedAt),
        ...authProviders(editions),
        ...governedDataProviders(policies, databaseTurnsOf(config.database)),
        ungovernedProvider(config),
        ...searchProviders(config.embeddings, config.llm.allowedEndpoints !== null),
        ...callProviders({ policies, gates, shared, maxRunningCalls: config.server.maxRunningCalls }),
        ...mcpProviders(config, shared),
        ...(parts.replaced ?? []),
      ],
    };
  }
}
