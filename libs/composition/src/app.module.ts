import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule } from '@nestjs/event-emitter';
import { AuditSink } from '#audit';
import { Authenticator, RecordedAuthenticator } from '#auth';
import type { SharedState } from '#cluster';
import {
  GovernedRecordsSource,
  GovernedSearchSource,
  GovernedWritesSource,
  Impersonation,
  PrincipalDirectory,
  PrincipalResolver,
  RecordReader,
  RecordWriter,
  SchemaCatalogue,
  SchemaWriter,
} from '#data';
import type { MongoConnection } from '#data-mongo';
import {
  Approver,
  CallJournal,
  createPipeline,
  DataBudgets,
  MethodExplorer,
  ParleyToolRunner,
  PromptExplorer,
  PromptRegistry,
  RecordsSource,
  ResourceRegistry,
  ToolCallbacks,
  ToolContext,
  ToolExplorer,
} from '#dispatcher';
import { ProcessTaskQueue, TaskQueue } from '#jobs';
import { AgentScopes, type EnvironmentGates, Policies } from '#policy';
import {
  BUILT_IN_TOOLS,
  CallableMethods,
  DeclaredMethods,
  MethodRegistry,
  PermittedTools,
  ToolCatalogue,
  ToolEnvironment,
  ToolRegistry,
  ToolRunner,
} from '#tools';
import { agentProviders } from './agents.js';
import { approvalProviders } from './approvals.js';
import { auditProviders } from './audit.js';
import { createAuthenticator } from './auth.js';
import { EditionAuthenticator } from './editions/edition-authenticator.js';
import { Editions } from './editions/editions.js';
import type { LoadedConfig } from '#config';
import { ApprovalsController } from './http/approvals.controller.js';
import { dataProviders, parseConnectionOf } from './data-stores.js';
import { OAuthRules, oauthProviders } from './oauth.js';
import { exportProviders } from './exports.js';
import { ResourceDocumentsController } from './http/resource-documents.controller.js';
import { HealthController } from './http/health.controller.js';
import { Readiness } from './http/readiness.js';
import { ToolsController } from './http/tools.controller.js';
import { mcpProviders } from './mcp.js';
import { NOTHING_OBSERVED, type Observability, telemetryProviders } from './observe/observability.js';
import { WrittenClasses } from './written-classes.js';
import type { PluginModule } from './plugins/plugin-modules.js';
import { searchProviders } from './search.js';
import { taskProviders } from './tasks.js';
import { sharedStateProviders } from './shared-state.js';
import { subscriptionProviders } from './subscriptions.js';
import { wireProviders } from './wire.js';

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
        ...BUILT_IN_TOOLS,
        ...features,
        { provide: Editions, useValue: editions },
        { provide: Policies, useValue: policies },
        ToolContext,
        ToolExplorer,
        PromptExplorer,
        MethodExplorer,
        MethodRegistry,
        { provide: DeclaredMethods, useExisting: MethodRegistry },
        { provide: CallableMethods, useExisting: MethodRegistry },
        { provide: ToolEnvironment, useValue: gates },
        ...dataProviders({ mongo: connection, parse: parseConnectionOf(config.parse) }, written),
        { provide: ToolRegistry, useClass: ToolCatalogue },
        ...approvalProviders(config, shared),
        ...auditProviders({
          config: config.audit,
          connection,
          shared,
          listeners: parts.auditListeners ?? [],
        }),
        ...agentProviders(policies, gates),
        ...sharedStateProviders(shared),
        {
          provide: DataBudgets,
          useFactory: () => new DataBudgets(shared.budgets, (agent) => policies.of(agent).tenantBudget),
        },
        ...telemetryProviders(observed),
        { provide: TaskQueue, useValue: queue },
        Readiness,
        ...wireProviders(shared),
        ...subscriptionProviders(config, connection, shared),
        ...taskProviders({ config, configured: editions, shared, queue }),
        ...exportProviders({ config, policies, shared }),
        ...oauthProviders(editions, shared),
        {
          provide: Authenticator,
          useFactory: (
            directory: PrincipalDirectory,
            impersonation: Impersonation,
            oauth: OAuthRules,
            audit: AuditSink,
          ) =>
            new RecordedAuthenticator(
              new EditionAuthenticator(editions, (edition) =>
                createAuthenticator(edition, directory, impersonation, oauth),
              ),
              audit,
            ),
          inject: [PrincipalDirectory, Impersonation, OAuthRules, AuditSink],
        },
        {
          provide: PrincipalResolver,
          useFactory: (directory: PrincipalDirectory) =>
            new PrincipalResolver(directory, (agent) => policies.of(agent).switches.strictRole),
          inject: [PrincipalDirectory],
        },
        {
          provide: GovernedRecordsSource,
          useFactory: (reader: RecordReader, catalogue: SchemaCatalogue, identities: PrincipalResolver) =>
            new GovernedRecordsSource(new AgentScopes(policies), reader, catalogue, identities),
          inject: [RecordReader, SchemaCatalogue, PrincipalResolver],
        },
        ...searchProviders(config.embeddings),
        {
          provide: GovernedWritesSource,
          useFactory: (records: GovernedRecordsSource, rows: RecordWriter, classes: SchemaWriter) =>
            new GovernedWritesSource(records, rows, classes),
          inject: [GovernedRecordsSource, RecordWriter, SchemaWriter],
        },
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
          ],
        },
        { provide: PermittedTools, useExisting: ToolRunner },
        { provide: RecordsSource, useExisting: GovernedRecordsSource },
        ...mcpProviders(config, shared),
        ...(parts.replaced ?? []),
      ],
    };
  }
}
