import type { INestApplicationContext, Provider } from '@nestjs/common';
import { ApprovalsRoute } from './approvals-route.js';
import { AuthorizationServerRoute, ProtectedResourceRoute } from './documents-route.js';
import { HealthRoute, ReadyRoute } from './health-route.js';
import type { Neighbour } from './neighbour.js';
import { ToolsRoute } from './tools-route.js';

/** Every route beside MCP that is answered whole, by what it is for. */
export type ServiceNeighbours = Readonly<
  Record<'tools' | 'approvals' | 'health' | 'ready' | 'protectedResource' | 'authorizationServer', Neighbour>
>;

export function neighbourProviders(): Provider[] {
  return [
    ToolsRoute,
    ApprovalsRoute,
    HealthRoute,
    ReadyRoute,
    ProtectedResourceRoute,
    AuthorizationServerRoute,
  ];
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
