import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { EventEmitterModule } from '@nestjs/event-emitter';
import type { AuditSink } from '#audit';
import type { SharedState } from '#cluster';
import type { LoadedConfig } from '#config';
import type { MongoConnection } from '#data-mongo';
import { PromptRegistry, ResourceRegistry } from '#dispatcher';
import { ProcessTaskQueue, TaskQueue } from '#jobs';
import { type EnvironmentGates, Policies } from '#policy';
import { ToolRegistry } from '#tools';
import { agentProviders } from './agents.js';
import { approvalProviders } from './approvals.js';
import { auditProviders } from './audit.js';
import { authProviders } from './auth.js';
import { callProviders } from './calls.js';
import { dataProviders, parseConnectionOf } from './data-stores.js';
import { Editions } from './editions/editions.js';
import { exportProviders } from './exports.js';
import { governedDataProviders } from './governed-data.js';
import { ApprovalsController } from './http/approvals.controller.js';
import { HealthController } from './http/health.controller.js';
import { Readiness } from './http/readiness.js';
import { ResourceDocumentsController } from './http/resource-documents.controller.js';
import { ToolsController } from './http/tools.controller.js';
import { mcpProviders } from './mcp.js';
import { NOTHING_OBSERVED, type Observability, telemetryProviders } from './observe/observability.js';
import { oauthProviders } from './oauth.js';
import type { PluginModule } from './plugins/plugin-modules.js';
import { searchProviders } from './search.js';
import { sharedStateProviders } from './shared-state.js';
import { subscriptionProviders } from './subscriptions.js';
import { taskProviders } from './tasks.js';
import { toolProviders } from './tools.js';
import { wireProviders } from './wire.js';
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
    return {
      module: AppModule,
      imports: [DiscoveryModule, EventEmitterModule.forRoot(), ...plugins],
      // For the providers of plugins.
      global: true,
      exports: [ToolRegistry, PromptRegistry, ResourceRegistry],
      controllers: [HealthController, ToolsController, ApprovalsController, ResourceDocumentsController],
      providers: [
        ...toolProviders(gates),
        ...features,
        { provide: Editions, useValue: editions },
        { provide: Policies, useValue: policies },
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
        ...wireProviders(shared),
        ...subscriptionProviders(config, connection, shared),
        ...taskProviders({ config, configured: editions, shared, queue }),
        ...exportProviders({ config, policies, shared }),
        ...oauthProviders(editions, shared),
        ...authProviders(editions),
        ...governedDataProviders(policies),
        ...searchProviders(config.embeddings),
        ...callProviders({ policies, gates, shared }),
        ...mcpProviders(config, shared),
        ...(parts.replaced ?? []),
      ],
    };
  }
}
