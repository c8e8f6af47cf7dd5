import {
  type DynamicModule,
  type INestApplicationContext,
  Module,
  type ModuleMetadata,
} from '@nestjs/common';
import { ApprovalsRoute } from './approvals-route.js';
import { AuthorizationServerRoute, ProtectedResourceRoute } from './documents-route.js';
import { HealthRoute, ReadyRoute } from './health-route.js';
import type { Neighbour } from './neighbour.js';
import { Readiness } from './readiness.js';
import { ToolsRoute } from './tools-route.js';

/** Every route beside MCP that is answered whole, by what it is for. */
export type ServiceNeighbours = Readonly<
  Record<'tools' | 'approvals' | 'health' | 'ready' | 'protectedResource' | 'authorizationServer', Neighbour>
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

export function neighboursOf(app: INestApplicationContext): ServiceNeighbours {
  return {
    tools: app.get(ToolsRoute),
    approvals: app.get(ApprovalsRoute),
    health: app.get(HealthRoute),
    ready: app.get(ReadyRoute),
    protectedResource: app.get(ProtectedResourceRoute),
    authorizationServer: app.get(AuthorizationServerRoute),
  };
}
