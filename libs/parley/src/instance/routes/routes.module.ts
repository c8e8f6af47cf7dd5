import {
  type DynamicModule,
  type INestApplicationContext,
  type InjectionToken,
  Module,
} from '@nestjs/common';
import { ApprovalRoutesModule, ApprovalService } from '#approvals';
import { AuditModule } from '#audit';
import { Authenticator, CurrentDocuments } from '#auth';
import { provideFromInstance, toInstanceProviders } from '#core';
import { ExportRoutesModule } from '#exports';
import { StateModule } from '#state';
import { CallerRoutesModule, McpEdge, StreamingModule } from '#streaming';
import { TasksModule } from '#tasks';
import { ToolRunner } from '#tools';
import { ConnectionsModule } from '../data/adapters.module.js';
import { HealthController, ReadyController } from './health.controller.js';
import { ConfigurationModule } from '../configuration.module.js';
import { Readiness } from './readiness.js';

/** Whether the service can answer calls. */
@Module({
  imports: [ConfigurationModule, ConnectionsModule, StateModule, AuditModule, TasksModule, StreamingModule],
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

/** Provides some providers of an instance to the modules of its routes, which take them with `provideFromInstance`. */
@Module({})
export class InstanceProvidersModule {
  /** @throws TypeError for a provider with lifecycle hooks: both containers would run them */
  static register(instance: INestApplicationContext, tokens: readonly InjectionToken[]): DynamicModule {
    const providers = toInstanceProviders(
      tokens.map((provide) => {
        const useValue = instance.get<object>(provide);
        const hook = HOOKS.find((name) => typeof Reflect.get(useValue, name) === 'function');
        if (hook !== undefined) throw new TypeError(`${nameOf(provide)} has the lifecycle hook ${hook}`);
        return { provide, useValue };
      }),
    );
    return {
      module: InstanceProvidersModule,
      global: true,
      providers,
      exports: providers.map(({ provide }) => provide),
    };
  }
}

/** Probes. */
@Module({ controllers: [HealthController, ReadyController], providers: [provideFromInstance(Readiness)] })
class ProbeRoutesModule {}

/** What the routes of every instance take of it. */
const TAKEN = [ApprovalService, Authenticator, CurrentDocuments, McpEdge, Readiness, ToolRunner];

/** The routes beside MCP. */
@Module({ imports: [CallerRoutesModule, ApprovalRoutesModule, ProbeRoutesModule, ExportRoutesModule] })
export class RoutesModule {
  /** @param further modules with further controllers */
  static register(instance: INestApplicationContext, further: readonly DynamicModule[] = []): DynamicModule {
    return { module: RoutesModule, imports: [InstanceProvidersModule.register(instance, TAKEN), ...further] };
  }
}
