import type { Type } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { listPrompts } from '#dispatcher';
import type { ClassDeclaration } from '#policy';
import { findClassDeclaration, toolDeclarations } from '#tools';

/** Assigns providers of a module to instances. */
export class FeatureList {
  constructor(
    readonly instance: string,
    readonly classes: readonly Type[],
  ) {}
}

function* listFor(name: string, discovery: DiscoveryService) {
  const wrappers = discovery.getProviders();
  for (const { instance: list, host } of wrappers) {
    if (!(list instanceof FeatureList) || list.instance !== name) continue;
    for (const type of list.classes) {
      const own = wrappers.find((wrapper) => wrapper.host === host && wrapper.token === type);
      if (own) yield { type, own };
    }
  }
}

/** The Parse class declarations of the listed classes, before any of them is created. */
export function listDeclaredClasses(name: string, discovery: DiscoveryService): ClassDeclaration[] {
  return [...listFor(name, discovery)].flatMap(({ type }) => findClassDeclaration(type) ?? []);
}

/**
 * The listed providers as the application created them.
 * @throws TypeError for a request-scoped or transient provider or dependency: a call has no Nest request
 */
export function listInstances(name: string, discovery: DiscoveryService): object[] {
  return [...listFor(name, discovery)].flatMap(({ type, own }) => {
    // Nest would otherwise run an enhancer that was never constructed.
    for (const enhancer of own.host?.injectables.values() ?? [])
      if (!enhancer.isDependencyTreeStatic())
        throw new TypeError(`${enhancer.name} on tools is made for each request: ${MADE_ONCE}`);
    if (own.isTransient || !own.isDependencyTreeStatic())
      throw new TypeError(`${type.name} is made for each request: ${MADE_ONCE}`);
    const made = own.instance as unknown;
    return made !== null && typeof made === 'object' ? [made] : [];
  });
}

/** The error of a listed class that Nest and Parley would ignore silently, or null. */
export function findOversight(type: Type): string | null {
  const prototype = type.prototype as object;
  const offers = toolDeclarations(prototype).length + listPrompts(Object.create(prototype)).length;
  // Methods of an agent need a class declaration.
  if (offers === 0 && !findClassDeclaration(type))
    return 'has no @Tool, @Prompt, @AgentMethod or @ParseClass: nothing of it is served';
  if (type.length > 0 && !runRecorded(type, 'design:paramtypes') && !runRecorded(type, 'self:paramtypes'))
    return `gets undefined for what its constructor takes, because no types are recorded: ${RECORD}`;
  return null;
}

const runRecorded = (type: Type, key: string) => (Reflect.getMetadata(key, type) as unknown) !== undefined;
const RECORD =
  'it lacks @Injectable(), or the compiler (esbuild and tsx always, tsc and SWC without emitDecoratorMetadata) ' +
  'leaves them out; @Inject(Token) on each parameter works everywhere';

/** Names of classes with tools that no `forFeature` lists: these tools cannot be called. */
export function listUnlistedTools(discovery: DiscoveryService): string[] {
  const wrappers = discovery.getProviders();
  const listed = new Set<unknown>(
    wrappers.flatMap(({ instance }) => (instance instanceof FeatureList ? [...instance.classes] : [])),
  );
  const types = new Set(
    wrappers.flatMap(({ metatype }) => (metatype && !listed.has(metatype) ? [metatype] : [])),
  );
  return [...types].flatMap((type) => {
    const prototype = (type as { prototype?: unknown }).prototype;
    const holds =
      typeof prototype === 'object' && prototype !== null && toolDeclarations(prototype).length > 0;
    return holds ? [type.name] : [];
  });
}

const MADE_ONCE =
  'tools, and guards, interceptors, pipes and filters on them, are made once, and so is what they inject';
