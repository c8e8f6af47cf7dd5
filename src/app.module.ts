import { type DynamicModule, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule } from '@nestjs/event-emitter';
import { AuditSink, LoggerAuditSink } from '#audit';
import { Authenticator } from '#auth';
import { ProcessSessionStore, SessionStore } from '#cluster';
import { GovernedRecordsSource, RecordReader, SchemaCatalogue } from '#data';
import { MongoConnection, MongoRecordReader, MongoSchemaCatalogue } from '#data-mongo';
import {
  Approver,
  createPipeline,
  Kernel,
  NoApprover,
  ParleyToolRunner,
  RecordsSource,
  ToolExplorer,
} from '#dispatcher';
import { AgentScopes, type EnvironmentGates } from '#policy';
import { McpEdge } from '#streaming';
import {
  BUILT_IN_TOOLS,
  PermittedTools,
  ToolCatalogue,
  ToolRegistry,
  ToolRunner,
  ToolSwitches,
} from '#tools';
import { createAuthenticator } from './auth.js';
import type { LoadedConfig } from './config/load-config.js';
import { HealthController } from './http/health.controller.js';
import { ToolsController } from './http/tools.controller.js';
import { createEdge, createKernel } from './mcp.js';

export interface ServiceParts {
  readonly loaded: LoadedConfig;
  readonly connection: MongoConnection;
  readonly gates: EnvironmentGates;
}

/** The composition root of the service: binds ports to adapters and holds no rules. */
@Module({})
export class AppModule {
  static compose({ loaded, connection, gates }: ServiceParts): DynamicModule {
    const { policy, config } = loaded;
    return {
      module: AppModule,
      imports: [DiscoveryModule, EventEmitterModule.forRoot()],
      controllers: [HealthController, ToolsController],
      providers: [
        ...BUILT_IN_TOOLS,
        ToolExplorer,
        { provide: MongoConnection, useValue: connection },
        { provide: SchemaCatalogue, useFactory: () => new MongoSchemaCatalogue(connection) },
        {
          provide: RecordReader,
          useFactory: (catalogue: SchemaCatalogue) => new MongoRecordReader(connection, catalogue),
          inject: [SchemaCatalogue],
        },
        { provide: ToolSwitches, useValue: policy.switches },
        { provide: ToolRegistry, useClass: ToolCatalogue },
        { provide: Approver, useClass: NoApprover },
        { provide: AuditSink, useClass: LoggerAuditSink },
        { provide: SessionStore, useClass: ProcessSessionStore },
        { provide: Authenticator, useFactory: () => createAuthenticator(loaded) },
        {
          provide: GovernedRecordsSource,
          useFactory: (reader: RecordReader, catalogue: SchemaCatalogue) =>
            new GovernedRecordsSource(new AgentScopes(policy), reader, catalogue),
          inject: [RecordReader, SchemaCatalogue],
        },
        {
          provide: ToolRunner,
          useFactory: (
            registry: ToolRegistry,
            records: GovernedRecordsSource,
            approver: Approver,
            audit: AuditSink,
            events: EventEmitter2,
          ) =>
            new ParleyToolRunner({
              registry,
              records,
              policy,
              gates,
              audit,
              events,
              pipeline: createPipeline({ registry, policy, gates, events, approver }),
            }),
          inject: [ToolRegistry, GovernedRecordsSource, Approver, AuditSink, EventEmitter2],
        },
        { provide: PermittedTools, useExisting: ToolRunner },
        { provide: RecordsSource, useExisting: GovernedRecordsSource },
        {
          provide: Kernel,
          useFactory: createKernel,
          inject: [ToolRunner, RecordsSource],
        },
        {
          provide: McpEdge,
          useFactory: (kernel: Kernel, authenticator: Authenticator, sessions: SessionStore) =>
            createEdge(config, { kernel, authenticator, sessions }),
          inject: [Kernel, Authenticator, SessionStore],
        },
      ],
    };
  }
}
