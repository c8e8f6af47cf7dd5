import type { Type } from '@nestjs/common';
import { GUARDS_METADATA, PATH_METADATA, SSE_METADATA } from '@nestjs/common/constants.js';
import { type ApplicationConfig, type DiscoveryService, MetadataScanner } from '@nestjs/core';
import { tierCovers } from '#core';
import { ConfigError, type ConfigIssue } from '#config';
import { ParleyGuard } from './parley.guard.js';
import { hasClasses, readRoute } from './route-decorators.js';

type Handler = (...args: never[]) => unknown;

const isParleyGuard = (guard: unknown): boolean =>
  guard instanceof ParleyGuard ||
  (typeof guard === 'function' && (guard === ParleyGuard || guard.prototype instanceof ParleyGuard));

const guardsOf = (target: object): readonly unknown[] =>
  (Reflect.getMetadata(GUARDS_METADATA, target) as readonly unknown[] | undefined) ?? [];

interface DeclaredRoute {
  readonly controller: Type;
  readonly handler: Handler;
  /** The module that has the controller. */
  readonly host: Type | undefined;
}

/** Every route of the application that a method of a controller serves. */
export function* listRoutes(discovery: DiscoveryService): Generator<DeclaredRoute> {
  const scanner = new MetadataScanner();
  for (const { metatype, host } of discovery.getControllers()) {
    if (typeof metatype !== 'function') continue;
    const controller = metatype as Type;
    const prototype = controller.prototype as Record<string, Handler>;
    for (const name of scanner.getAllMethodNames(prototype)) {
      const handler = prototype[name] as Handler;
      if (Reflect.hasMetadata(PATH_METADATA, handler)) yield { controller, handler, host: host?.metatype };
    }
  }
}

interface Surroundings {
  /** Whether every route has the guard. */
  readonly isGlobal: boolean;
  readonly instances: ReadonlySet<string>;
}

/** A list of tools would admit to both, and records would not say which was called. */
const SAME_NAME = 'another controller of this name has a guarded route of this name: rename one of them';

/** What is wrong with the declaration of a route, or null. */
function mistakeOf(controller: Type, handler: Handler, { isGlobal, instances }: Surroundings): string | null {
  const isGuarded = isGlobal || [...guardsOf(controller), ...guardsOf(handler)].some(isParleyGuard);
  const route = readRoute(controller, handler);
  if (!route && hasClasses(controller, handler))
    return '@UsesClass asks nothing alone: write @RequirePermission and @UseGuards(ParleyGuard) as well';
  if (!isGuarded)
    return route && '@RequirePermission admits nobody alone: write @UseGuards(ParleyGuard) as well';
  if (!route)
    return (
      'ParleyGuard admits nobody to a route that requires no permission: write @RequirePermission("readonly"), ' +
      '("write") or ("admin") on it or on its controller'
    );
  if (!instances.has(route.instance)) return `there is no instance '${route.instance}' of ParleyModule`;
  if (route.definition.needs && !tierCovers(route.definition.permission, 'write'))
    return '@UsesClass with create, update or delete needs @RequirePermission("write") or higher';
  if (Reflect.hasMetadata(SSE_METADATA, handler))
    return 'a route of @Sse has no end that could be recorded: ParleyGuard cannot guard it';
  return null;
}

/**
 * The names of the routes that `ParleyGuard` guards.
 * @param instances the names of all instances in the application
 * @throws ConfigError for routes that are declared in part
 */
export function guardedRoutes(
  discovery: DiscoveryService,
  config: Pick<ApplicationConfig, 'getGlobalGuards' | 'getGlobalRequestGuards'>,
  instances: ReadonlySet<string>,
): readonly string[] {
  const scoped = config.getGlobalRequestGuards().map(({ metatype }) => metatype as unknown);
  const isGlobal = [...config.getGlobalGuards(), ...scoped].some(isParleyGuard);
  const named = new Map<string, Type>();
  const issues: ConfigIssue[] = [];
  for (const { controller, handler } of listRoutes(discovery)) {
    const name = readRoute(controller, handler)?.name;
    const other = name !== undefined && (named.get(name) ?? controller) !== controller;
    const message = mistakeOf(controller, handler, { isGlobal, instances }) ?? (other ? SAME_NAME : null);
    if (message !== null) issues.push({ path: `${controller.name}.${handler.name}`, message });
    else if (name !== undefined) named.set(name, controller);
  }
  if (issues.length > 0) throw new ConfigError('routes', issues);
  return [...named.keys()];
}
