import {
  type DynamicModule,
  type INestApplicationContext,
  type InjectionToken,
  Module,
} from '@nestjs/common';
import { ApprovalService } from '#approvals';
import { AuditModule } from '#audit';
import { Authenticator, CurrentDocuments } from '#auth';
import { StateModule } from '#state';
import { McpEdge, StreamingModule } from '#streaming';
import { TasksModule } from '#tasks';
import { ToolRunner } from '#tools';
import { ConnectionsModule } from '../data/adapters.module.js';
import { ApprovalRoutesController } from './approvals.controller.js';
import { ExportsController } from './exports.controller.js';
import { HealthController, ReadyController } from './health.controller.js';
import { AuthorizationServerController, ProtectedResourceController } from './oauth-documents.controller.js';
import { Readiness } from './readiness.js';
import { ToolsController } from './tools.controller.js';

/** Whether the service can answer calls. */
@Module({
  imports: [ConnectionsModule, StateModule, AuditModule, TasksModule, StreamingModule],
  providers: [Readiness],
  exports: [Readiness],
})
export class ReadinessModule {}

const HOOKS = [
  'onModuleInit',
  'onApplicationBootstrap',
  'onModuleDestroy',
  'beforeApplicationShutdown',
  'onApplicationShutdown',
];

const nameOf = (token: InjectionToken) => (typeof token === 'function' ? token.name : String(token));

/** Provides some providers of an instance to the application of its routes. */
@Module({})
export class InstanceProvidersModule {
  /** @throws TypeError for a provider with lifecycle hooks: both containers would run them */
  static register(instance: INestApplicationContext, tokens: readonly InjectionToken[]): DynamicModule {
    const providers = tokens.map((provide) => {
      const useValue = instance.get<object>(provide);
      const hook = HOOKS.find((name) => typeof Reflect.get(useValue, name) === 'function');
      if (hook !== undefined) throw new TypeError(`${nameOf(provide)} has the lifecycle hook ${hook}`);
      return { provide, useValue };
    });
    return { module: InstanceProvidersModule, providers, exports: [...tokens] };
  }
}

/** The routes beside MCP. */
@Module({
  controllers: [
    ToolsController,
    ApprovalRoutesController,
    HealthController,
    ReadyController,
    ExportsController,
    ProtectedResourceController,
    AuthorizationServerController,
  ],
})
export class RoutesModule {
  /** @param instance provides the data of the routes */
  static register(instance: INestApplicationContext): DynamicModule {
    const tokens = [ApprovalService, Authenticator, CurrentDocuments, McpEdge, Readiness, ToolRunner];
    return { module: RoutesModule, imports: [InstanceProvidersModule.register(instance, tokens)] };
  }
}
