import type { DynamicModule, Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';
import type { ClassDeclaration } from '#policy';
import { classDeclarationOf, type ToolDeclaration, toolDeclarations } from '#tools';

/** What the default export of a plugin is: a Nest module, with `@Tool`, `@ParseClass` and other providers in it. */
export type PluginModule = Type<unknown> | DynamicModule;

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object';
const isClass = (value: unknown): value is Type<unknown> => typeof value === 'function';

export function isPluginModule(value: unknown): value is PluginModule {
  if (isClass(value)) return Object.values(MODULE_METADATA).some((key) => Reflect.hasMetadata(key, value));
  return isObject(value) && isClass(value['module']);
}

/** The provider classes of a module and of the modules it imports. */
function* providersOf(module: unknown, seen: Set<unknown>): Generator<Type<unknown>> {
  if (seen.has(module)) return;
  seen.add(module);
  const dynamic = isObject(module) && isClass(module['module']) ? module : null;
  const type = dynamic ? dynamic['module'] : module;
  if (!isClass(type)) return;
  const listed = (key: string): unknown[] => [
    ...((Reflect.getMetadata(key, type) as unknown[] | undefined) ?? []),
    ...((dynamic?.[key] as unknown[] | undefined) ?? []),
  ];
  for (const provider of listed(MODULE_METADATA.PROVIDERS)) {
    const known = isObject(provider) ? provider['useClass'] : provider;
    if (isClass(known)) yield known;
  }
  for (const imported of listed(MODULE_METADATA.IMPORTS)) yield* providersOf(imported, seen);
}

function providerClasses(modules: readonly PluginModule[]): Type<unknown>[] {
  const seen = new Set<unknown>();
  return modules.flatMap((module) => [...providersOf(module, seen)]);
}

/** What the providers of plugins say about Parse classes, before any of them is made. */
export function declarationsOf(modules: readonly PluginModule[]): ClassDeclaration[] {
  return providerClasses(modules).flatMap((provider) => classDeclarationOf(provider) ?? []);
}

/** The tools of plugins, before any provider is made. @throws ToolDeclarationError */
export function toolsOfPlugins(modules: readonly PluginModule[]): ToolDeclaration[] {
  return providerClasses(modules).flatMap((provider) => toolDeclarations(provider.prototype as object));
}
