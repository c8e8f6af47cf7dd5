import {
  applyDecorators,
  createParamDecorator,
  type ExecutionContext,
  SetMetadata,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { type Tier, TIERS } from '#core';
import { assertOptions } from '#policy';
import type { RowWritingCall, ToolCall, ToolDefinition } from '#tools';
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

const REQUIRED_PERMISSION = 'parley:required_permission';

/**
 * The lowest permissions of an agent that may call a route, or every route of a controller, behind `ParleyGuard`. The
 * route then runs as a tool of this tier does (docs/guide/module.md#own-routes): its gates, limits and audit record.
 * @throws TypeError for an unknown permission or timeout
 */
export function RequirePermission(
  permission: Tier,
  options: RequirePermissionOptions = {},
): MethodDecorator & ClassDecorator {
  assertOptions('@RequirePermission', options, { instance: true, clientSafe: true, timeout: true });
  const { instance = 'default', clientSafe = false, timeout = 30 } = options;
  if (!TIERS.includes(permission))
    throw new TypeError(`@RequirePermission: expected one of ${TIERS.join(', ')}`);
  if (!Number.isFinite(timeout) || timeout < 1)
    throw new TypeError('@RequirePermission: timeout must be seconds, at least 1');
  return applyDecorators(
    SetMetadata<string, RequiredPermission>(REQUIRED_PERMISSION, {
      instance,
      permission,
      clientSafe,
      timeout,
    }),
    UseInterceptors(RouteInterceptor),
  );
}

/** What a route does with a class, in the words of class-level permissions. */
export type RouteClassUse = 'find' | 'get' | 'count' | 'create' | 'update' | 'delete';

const WRITES: ReadonlySet<RouteClassUse> = new Set(['create', 'update', 'delete']);
const CLASS_USES: readonly RouteClassUse[] = ['find', 'get', 'count', 'create', 'update', 'delete'];

/** A class that a route uses, and how. */
export interface UsedClass {
  readonly className: string;
  readonly operation: RouteClassUse;
}

const USES = 'parley:used_classes';

/**
 * A class that a route, or every route of a controller, uses: the route runs only for agents whom the gates of the class let
 * do so. May stand more than once. With `create`, `update` or `delete` the route needs the permission `write`, the gates of
 * the environment for tools that write, and its `@CurrentCall()` has `writes`.
 * @param operations Default `find`
 * @throws TypeError for an unknown operation
 */
export function UsesClass(
  className: string,
  ...operations: readonly RouteClassUse[]
): MethodDecorator & ClassDecorator {
  const asked = operations.length > 0 ? operations : (['find'] as const);
  if (asked.some((operation) => !CLASS_USES.includes(operation)))
    throw new TypeError(`@UsesClass: expected operations of ${CLASS_USES.join(', ')}`);
  return (target: object, _name?: unknown, descriptor?: { readonly value?: unknown }) => {
    const declared = (descriptor?.value ?? target) as object;
    const others = (Reflect.getOwnMetadata(USES, declared) ?? []) as readonly UsedClass[];
    const uses = asked.map((operation): UsedClass => ({ className, operation }));
    Reflect.defineMetadata(USES, [...uses, ...others], declared);
  };
}

/** @throws Refused for the first class that the agent of the call may not use so */
export async function admitClasses(uses: readonly UsedClass[], call: ToolCall): Promise<void> {
  for (const { className, operation } of uses)
    if (operation === 'create' || operation === 'update' || operation === 'delete')
      await (call as RowWritingCall).writes.admit(className, operation);
    else await call.records.admit(className, operation);
}

/** The call of a route behind `ParleyGuard`: the governed data of its agent, its signal, and whom it may ask. */
export const CurrentCall = createParamDecorator(
  (_: unknown, context: ExecutionContext): ToolCall => RouteCall.of(context.switchToHttp().getRequest()).call,
);

export interface DeclaredRoute {
  /** `route:OrdersController.ship`: the name in audit records and tool filters. The colon makes it the name of no tool. */
  readonly name: string;
  readonly instance: string;
  readonly definition: ToolDefinition;
  /** Those of the controller first. */
  readonly uses: readonly UsedClass[];
}

type Handler = (...args: never[]) => unknown;

/** Whether a route declares classes; without `@RequirePermission` nothing reads them. */
export const hasClasses = (controller: Type, handler: Handler): boolean =>
  [controller, handler].some((target) => Reflect.hasMetadata(USES, target));

/** @returns null for a route without `@RequirePermission` */
export function readRoute(controller: Type, handler: Handler): DeclaredRoute | null {
  const required =
    metadataOf<RequiredPermission>(REQUIRED_PERMISSION, handler) ??
    metadataOf(REQUIRED_PERMISSION, controller);
  if (!required) return null;
  const { instance, permission, clientSafe, timeout } = required as RequiredPermission;
  const uses = [controller, handler].flatMap(
    (target) => metadataOf<readonly UsedClass[]>(USES, target) ?? [],
  );
  const name = `route:${controller.name}.${handler.name}`;
  const definition: ToolDefinition = {
    name,
    description: '',
    category: 'routes',
    permission,
    clientSafe,
    timeout,
    inputSchema: { type: 'object' },
    ...(uses.some(({ operation }) => WRITES.has(operation)) && { needs: ['rows'] }),
  };
  return { name, instance, definition, uses };
}

const metadataOf = <T>(key: string, target: Type | Handler): T | undefined =>
  Reflect.getMetadata(key, target) as T | undefined;
