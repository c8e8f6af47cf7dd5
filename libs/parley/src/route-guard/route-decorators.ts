import {
  applyDecorators,
  createParamDecorator,
  type ExecutionContext,
  SetMetadata,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { type Tier, TIERS } from '#core';
import type { ToolCall, ToolDefinition } from '#tools';
import { RouteCall, RouteInterceptor } from './route-call.js';

/** What a route requires beside a permission. */
export interface RequirePermissionOptions {
  /** The name of the instance that decides. Default `default`. */
  readonly instance?: string;
  /** Whether agents in client mode may call the route. Default false. */
  readonly clientSafe?: boolean;
  /** Seconds that the route may take, at least 1. Default 30. */
  readonly timeout?: number;
}

interface RequiredPermission {
  readonly instance: string;
  readonly permission: Tier;
  readonly clientSafe: boolean;
  readonly timeout: number;
}

const REQUIRED = 'parley:required_permission';

/**
 * The lowest permissions of an agent that may call a route, or every route of a controller, behind `ParleyGuard`. The
 * route then runs as a tool of this tier does (docs/guide/module.md#own-routes): its gates, limits and audit record.
 * @throws TypeError for an unknown permission or timeout
 */
export function RequirePermission(
  permission: Tier,
  { instance = 'default', clientSafe = false, timeout = 30 }: RequirePermissionOptions = {},
): MethodDecorator & ClassDecorator {
  if (!TIERS.includes(permission))
    throw new TypeError(`@RequirePermission: expected one of ${TIERS.join(', ')}`);
  if (!Number.isFinite(timeout) || timeout < 1)
    throw new TypeError('@RequirePermission: timeout must be seconds, at least 1');
  return applyDecorators(
    SetMetadata<string, RequiredPermission>(REQUIRED, { instance, permission, clientSafe, timeout }),
    UseInterceptors(RouteInterceptor),
  );
}

/** The call of a route behind `ParleyGuard`: the governed data of its agent, its signal, and whom it may ask. */
export const CurrentCall = createParamDecorator(
  (_: unknown, context: ExecutionContext): ToolCall => RouteCall.of(context.switchToHttp().getRequest()).call,
);

/** A route as it is declared. */
export interface DeclaredRoute {
  /** `route:OrdersController.ship`: the name in audit records and tool filters. The colon makes it the name of no tool. */
  readonly name: string;
  readonly instance: string;
  readonly definition: ToolDefinition;
}

type Handler = (...args: never[]) => unknown;

/** @returns null for a route without `@RequirePermission` */
export function readRoute(controller: Type, handler: Handler): DeclaredRoute | null {
  const required = metadataOf<RequiredPermission>(REQUIRED, handler) ?? metadataOf(REQUIRED, controller);
  if (!required) return null;
  const { instance, permission, clientSafe, timeout } = required as RequiredPermission;
  const name = `route:${controller.name}.${handler.name}`;
  const definition: ToolDefinition = {
    name,
    description: '',
    category: 'routes',
    permission,
    clientSafe,
    timeout,
    inputSchema: { type: 'object' },
  };
  return { name, instance, definition };
}

const metadataOf = <T>(key: string, target: Type | Handler): T | undefined =>
  Reflect.getMetadata(key, target) as T | undefined;
