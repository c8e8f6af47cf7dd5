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

/** Every route beside MCP that is answered whole, by what it is for. */
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

/** The routes beside MCP, and whether the service can serve. */
@Module({})
export class RoutesModule {
  /** @param imports provide what the routes answer from, and every dependency that readiness asks about */
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
