import {
  type DynamicModule,
  type INestApplicationContext,
  Module,
  type ModuleMetadata,
} from '@nestjs/common';
import { ApprovalsRoute } from './approvals-route.js';
import { AuthorizationServerRoute, ProtectedResourceRoute } from './documents-route.js';
import { HealthRoute, Readiness, ReadyRoute } from './health.js';
import type { HttpRoute } from './http-routes.js';
import { ToolsRoute } from './tools-route.js';

/** The routes beside MCP that send a whole answer, by purpose. */
export type InstanceRoutes = Readonly<
  Record<'tools' | 'approvals' | 'health' | 'ready' | 'protectedResource' | 'authorizationServer', HttpRoute>
>;

const ROUTES = [
  ToolsRoute,
  ApprovalsRoute,
  HealthRoute,
  ReadyRoute,
  ProtectedResourceRoute,
  AuthorizationServerRoute,
];

/** The routes beside MCP, and the readiness of the service. */
@Module({})
export class RoutesModule {
  /** @param imports provide the data of the routes and every dependency of readiness */
  static register(imports: ModuleMetadata['imports']): DynamicModule {
    return { module: RoutesModule, imports: [...(imports ?? [])], providers: [Readiness, ...ROUTES] };
  }
}

export function routesOf(app: INestApplicationContext): InstanceRoutes {
  return {
    tools: app.get(ToolsRoute),
    approvals: app.get(ApprovalsRoute),
    health: app.get(HealthRoute),
    ready: app.get(ReadyRoute),
    protectedResource: app.get(ProtectedResourceRoute),
    authorizationServer: app.get(AuthorizationServerRoute),
  };
}
