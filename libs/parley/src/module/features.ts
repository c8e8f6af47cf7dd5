import type { Type } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import {
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
} from '@nestjs/common/constants.js';
import { hasPrompts, hasResources } from '#dispatcher';
import type { ClassDeclaration } from '#policy';
import { findClassDeclaration, listMethods, toolDeclarations } from '#tools';

/** Assigns providers of a module to instances. */
export class FeatureList {
  constructor(
    readonly instance: string,
    readonly classes: readonly Type[],
  ) {}
}

/** Which providers of an application an instance serves. */
export interface Serving {
  /** Of the instance. */
  readonly name: string;
  /** Whether it also serves what no `forFeature` lists. */
  readonly discovers: boolean;
}

type Wrappers = ReturnType<DiscoveryService['getProviders']>;
type Provided = { readonly type: Type; readonly own: Wrappers[number] };

/** The providers that an instance serves, each once: the one that the application has itself before one that `forFeature` made. */
function listServed({ name, discovers }: Serving, discovery: DiscoveryService): Provided[] {
  const wrappers = discovery.getProviders();
  const lists = wrappers.flatMap(({ instance, host }) =>
    (instance as unknown) instanceof FeatureList ? [{ list: instance as FeatureList, host }] : [],
  );
  const isFeature = new Set(lists.map(({ host }) => host));
  const findOwn = (type: Type) =>
    wrappers.find(
      (wrapper) => wrapper.metatype === type && !wrapper.isNotMetatype && !isFeature.has(wrapper.host),
    );
  const served = new Map<Type, Wrappers[number]>();
  for (const { list, host } of lists) {
    if (list.instance !== name) continue;
    for (const type of list.classes) {
      const own =
        findOwn(type) ?? wrappers.find((wrapper) => wrapper.host === host && wrapper.token === type);
      if (own) served.set(type, own);
    }
  }
  const listed = new Set(lists.flatMap(({ list }) => list.classes));
  for (const type of discovers ? listOffering(wrappers) : []) {
    const own = listed.has(type) ? undefined : findOwn(type);
    if (own) served.set(type, own);
  }
  return [...served].map(([type, own]) => ({ type, own }));
}

/** Classes of providers with something to serve. */
function listOffering(wrappers: Wrappers): Set<Type> {
  return new Set(
    wrappers.flatMap(({ metatype, isNotMetatype }) => {
      const prototype = (metatype as { prototype?: unknown } | null)?.prototype;
      if (isNotMetatype || typeof prototype !== 'object' || prototype === null) return [];
      return hasOffer(metatype as Type) ? [metatype as Type] : [];
    }),
  );
}

function hasOffer(type: Type): boolean {
  const prototype = type.prototype as object;
  return (
    toolDeclarations(prototype).length > 0 ||
    hasPrompts(prototype) ||
    hasResources(prototype) ||
    findClassDeclaration(type) !== null
  );
}

/** The Parse class declarations of the served classes, before any of them is created. */
export function listDeclaredClasses(serving: Serving, discovery: DiscoveryService): ClassDeclaration[] {
  return listServed(serving, discovery).flatMap(({ type }) => findClassDeclaration(type) ?? []);
}

/**
 * The served providers as the application created them.
 * @throws TypeError for a request-scoped or transient provider or dependency: a call has no Nest request
 */
export function listInstances(serving: Serving, discovery: DiscoveryService): object[] {
  return listServed(serving, discovery).flatMap(({ type, own }) => {
    // Nest would otherwise run an enhancer that was never constructed.
    for (const enhancer of listEnhancers(type, own))
      if (!enhancer.isDependencyTreeStatic())
        throw new TypeError(`${enhancer.name} on tools is made for each request: ${MADE_ONCE}`);
    if (own.isTransient || !own.isDependencyTreeStatic())
      throw new TypeError(`${type.name} is made for each request: ${MADE_ONCE}`);
    const made = own.instance as unknown;
    return made !== null && typeof made === 'object' ? [made] : [];
  });
}

/** The guards, interceptors, pipes and filters of a class and its methods. */
function listEnhancers(type: Type, own: Wrappers[number]) {
  const hosts = [type, ...[...listMethods(type.prototype as object)].map(([, method]) => method)];
  const named = new Set(
    ENHANCERS.flatMap((key) => hosts.flatMap((host) => (Reflect.getMetadata(key, host) as unknown[]) ?? [])),
  );
  return [...(own.host?.injectables.values() ?? [])].filter(({ metatype }) => named.has(metatype));
}

const ENHANCERS = [GUARDS_METADATA, INTERCEPTORS_METADATA, PIPES_METADATA, EXCEPTION_FILTERS_METADATA];

/** The error of a listed class that Nest and Parley would ignore silently, or null. */
export function findOversight(type: Type): string | null {
  if (!hasOffer(type)) return 'has no @Tool, @Prompt, @AgentMethod or @ParseClass: nothing of it is served';
  if (type.length > 0 && !runRecorded(type, 'design:paramtypes') && !runRecorded(type, 'self:paramtypes'))
    return `gets undefined for what its constructor takes, because no types are recorded: ${RECORD}`;
  return null;
}

const runRecorded = (type: Type, key: string) => (Reflect.getMetadata(key, type) as unknown) !== undefined;
const RECORD =
  'it lacks @Injectable(), or the compiler (esbuild and tsx always, tsc and SWC without emitDecoratorMetadata) ' +
  'leaves them out; @Inject(Token) on each parameter works everywhere';

/** Names of classes with something to serve that no `forFeature` lists. */
export function listUnlisted(discovery: DiscoveryService): string[] {
  const wrappers = discovery.getProviders();
  const listed = new Set<unknown>(
    wrappers.flatMap(({ instance }) => (instance instanceof FeatureList ? [...instance.classes] : [])),
  );
  return [...listOffering(wrappers)].filter((type) => !listed.has(type)).map(({ name }) => name);
}

const MADE_ONCE =
  'tools, and guards, interceptors, pipes and filters on them, are made once, and so is what they inject';
