import type { Type } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import {
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
} from '@nestjs/common/constants.js';
import { hasResources, listPromptNames } from '#dispatcher';
import type { ClassDeclaration } from '#policy';
import { findClassDeclaration, listMethods, toolDeclarations } from '#tools';

/** Assigns providers of an application to an instance. */
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
  /** Whether it also serves what no `forFeature` names. */
  readonly discovers: boolean;
}

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];
type Provided = { readonly type: Type; readonly own: Wrapper };

/** The class of a provider: what it is made of, or, for a value or a factory, what it is injected by. */
function readClass({ metatype, token, isNotMetatype, isAlias }: Wrapper): Type | null {
  const type: unknown = isAlias ? null : isNotMetatype ? token : metatype;
  const prototype: unknown = typeof type === 'function' ? type.prototype : null;
  return typeof prototype === 'object' && prototype !== null ? (type as Type) : null;
}

const listFeatures = (wrappers: readonly Wrapper[]): FeatureList[] =>
  wrappers.flatMap(({ instance }) =>
    (instance as unknown) instanceof FeatureList ? [instance as FeatureList] : [],
  );

/** The provider of a class that a `forFeature` names. */
const findProvider = (type: Type, wrappers: readonly Wrapper[]): Wrapper | undefined =>
  wrappers.find((wrapper) => readClass(wrapper) === type) ?? wrappers.find(({ token }) => token === type);

/** The providers that an instance serves, each once: those that a `forFeature` gives it, and with discovery what none names. */
function listServed({ name, discovers }: Serving, discovery: DiscoveryService): Provided[] {
  const wrappers = discovery.getProviders();
  const lists = listFeatures(wrappers);
  const listed = new Set(lists.flatMap(({ classes }) => classes));
  const types = [
    ...lists.filter(({ instance }) => instance === name).flatMap(({ classes }) => classes),
    ...(discovers ? [...listOffering(wrappers)].filter((type) => !listed.has(type)) : []),
  ];
  const served = new Map<Wrapper, Type>();
  for (const type of types) {
    const own = findProvider(type, wrappers);
    if (own && !served.has(own)) served.set(own, type);
  }
  return [...served].map(([own, type]) => ({ type, own }));
}

/** Classes of providers with something to serve. */
function listOffering(wrappers: readonly Wrapper[]): Set<Type> {
  return new Set(
    wrappers.flatMap((wrapper) => {
      const type = readClass(wrapper);
      return type !== null && hasOffer(type) ? [type] : [];
    }),
  );
}

function hasOffer(type: Type): boolean {
  const prototype = type.prototype as object;
  return (
    toolDeclarations(prototype).length > 0 ||
    listPromptNames(prototype).length > 0 ||
    hasResources(prototype) ||
    findClassDeclaration(type) !== null
  );
}

/** The Parse class declarations of the served classes, before any of them is created. */
export function listDeclaredClasses(serving: Serving, discovery: DiscoveryService): ClassDeclaration[] {
  return listServed(serving, discovery).flatMap(({ type }) => findClassDeclaration(type) ?? []);
}

/** @throws TypeError for what stands in the place of a class with something to serve and lacks its decorators, guards among them */
function refuseStandIns(wrappers: readonly Wrapper[]): void {
  for (const { token, instance } of wrappers) {
    const type: unknown = token;
    const made: unknown = instance;
    const isOffering = typeof type === 'function' && isObject(type.prototype) && hasOffer(type as Type);
    if (!isOffering || !isObject(made)) continue;
    const lost = listLost(type as Type, made);
    if (lost.length > 0)
      throw new TypeError(
        `${type.name} is replaced by a value that lacks what is declared at ${lost.join(', ')}: its tools would be missing, or run ` +
          `without their guards. Replace what ${type.name} injects, or give an instance of ${type.name}, or null to serve nothing of it`,
      );
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Names of a class and its methods whose metadata something that stands for an instance of it does not have. */
function listLost(type: Type, made: object): string[] {
  const lacks = (declared: object, found: unknown) =>
    found !== declared &&
    Reflect.getMetadataKeys(declared).some(
      (key: unknown) =>
        !String(key).startsWith('design:') &&
        (typeof found !== 'function' || !Reflect.getMetadataKeys(found).includes(key)),
    );
  const methods = [...listMethods(type.prototype as object)].filter(([name, method]) =>
    lacks(method, Reflect.get(made, name)),
  );
  return [...(lacks(type, made.constructor) ? ['the class'] : []), ...methods.map(([name]) => `${name}()`)];
}

/**
 * The served providers as the application created them.
 * @throws TypeError for a request-scoped or transient provider or dependency: a call has no Nest request; for an enhancer
 * that Nest would skip
 */
export function listInstances(serving: Serving, discovery: DiscoveryService): object[] {
  refuseStandIns(discovery.getProviders());
  return listServed(serving, discovery).flatMap(({ type, own }) => {
    for (const enhancer of listEnhancers(type)) {
      const created = own.host?.injectables.get(enhancer);
      // Nest would otherwise leave it out.
      if (created === undefined)
        throw new TypeError(
          `${enhancer.name} would not run on ${type.name}: Nest creates it only for a class that stands in providers itself`,
        );
      // Nest would otherwise run an enhancer that was never constructed.
      if (!created.isDependencyTreeStatic())
        throw new TypeError(`${enhancer.name} on tools is made for each request: ${MADE_ONCE}`);
    }
    if (own.isTransient || !own.isDependencyTreeStatic())
      throw new TypeError(`${type.name} is made for each request: ${MADE_ONCE}`);
    const made = own.instance as unknown;
    return made !== null && typeof made === 'object' ? [made] : [];
  });
}

/** The classes of the guards, interceptors, pipes and filters of a class and its methods. */
function listEnhancers(type: Type): Set<Type> {
  const hosts = [type, ...[...listMethods(type.prototype as object)].map(([, method]) => method)];
  const named = ENHANCERS.flatMap((key) =>
    hosts.flatMap((host) => (Reflect.getMetadata(key, host) as unknown[] | undefined) ?? []),
  );
  return new Set(named.filter((one): one is Type => typeof one === 'function'));
}

const ENHANCERS = [GUARDS_METADATA, INTERCEPTORS_METADATA, PIPES_METADATA, EXCEPTION_FILTERS_METADATA];

/** One line for each served class that several modules provide, and that is therefore made several times. */
export function listRepeated(serving: Serving, discovery: DiscoveryService): string[] {
  const wrappers = discovery.getProviders();
  return listServed(serving, discovery).flatMap(({ type, own }) => {
    const others = wrappers.filter((other) => other !== own && readClass(other) === type);
    if (others.length === 0) return [];
    const [served, ...rest] = [own, ...others].map(({ host }) => host?.name ?? '?');
    return [
      `${type.name} is made more than once, because several modules provide it: that of ${served} is served, ` +
        `not that of ${rest.join(', ')}; export it from ${served} instead`,
    ];
  });
}

/** @returns the classes of a list that no module of the application provides */
export function listMissing({ classes }: FeatureList, discovery: DiscoveryService): Type[] {
  const wrappers = discovery.getProviders();
  return classes.filter((type) => findProvider(type, wrappers) === undefined);
}

/** The error of a listed class that Nest and Parley would ignore silently, or null. */
export function findOversight(type: Type): string | null {
  if (!hasOffer(type))
    return 'has no @Tool, @Prompt, @Resource, @AgentMethod or @ParseClass: nothing of it is served';
  if (type.length > 0 && !runRecorded(type, 'design:paramtypes') && !runRecorded(type, 'self:paramtypes'))
    return `gets undefined for what its constructor takes, because no types are recorded: ${RECORD}`;
  return null;
}

const runRecorded = (type: Type, key: string) => (Reflect.getMetadata(key, type) as unknown) !== undefined;
const RECORD =
  'it lacks @Injectable(), or the compiler (esbuild and tsx always, tsc and SWC without emitDecoratorMetadata) ' +
  'leaves them out; @Inject(Token) on each parameter works everywhere';

/** Classes of providers with something to serve. */
export const listOffered = (discovery: DiscoveryService): Set<Type> => listOffering(discovery.getProviders());

/** Names of classes with something to serve that no `forFeature` names. */
export function listUnlisted(discovery: DiscoveryService): string[] {
  const wrappers = discovery.getProviders();
  const listed = new Set(listFeatures(wrappers).flatMap(({ classes }) => classes));
  return [...listOffering(wrappers)].filter((type) => !listed.has(type)).map(({ name }) => name);
}

const MADE_ONCE =
  'tools, and guards, interceptors, pipes and filters on them, are made once, and so is what they inject';
