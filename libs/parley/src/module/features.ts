import type { Type } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import type { ClassDeclaration } from '#policy';
import { classDeclarationOf } from '#tools';

/** Which providers of a module belong to which instance. */
export class FeatureList {
  constructor(
    readonly instance: string,
    readonly classes: readonly Type[],
  ) {}
}

function* listedFor(name: string, discovery: DiscoveryService) {
  const wrappers = discovery.getProviders();
  for (const { instance: list, host } of wrappers) {
    if (!(list instanceof FeatureList) || list.instance !== name) continue;
    for (const type of list.classes) {
      const own = wrappers.find((wrapper) => wrapper.host === host && wrapper.token === type);
      if (own) yield { type, own };
    }
  }
}

/** What the listed classes say of Parse classes, before any of them is made. */
export function declaredClasses(name: string, discovery: DiscoveryService): ClassDeclaration[] {
  return [...listedFor(name, discovery)].flatMap(({ type }) => classDeclarationOf(type) ?? []);
}

/**
 * The listed providers as the application made them.
 * @throws TypeError for one that is made anew each time, or that needs such a thing: there is no Nest request in a call
 */
export function listedInstances(name: string, discovery: DiscoveryService): object[] {
  return [...listedFor(name, discovery)].flatMap(({ type, own }) => {
    // Nest would run one that was never constructed.
    for (const enhancer of own.host?.injectables.values() ?? [])
      if (!enhancer.isDependencyTreeStatic())
        throw new TypeError(`${enhancer.name} on tools is made anew for each request: ${MADE_ONCE}`);
    if (own.isTransient || !own.isDependencyTreeStatic())
      throw new TypeError(`${type.name} is made anew for each request: ${MADE_ONCE}`);
    const made = own.instance as unknown;
    return made !== null && typeof made === 'object' ? [made] : [];
  });
}

const MADE_ONCE =
  'tools, and guards, interceptors, pipes and filters on them, are made once, and so is what they inject';
