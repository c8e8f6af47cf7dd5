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

/** The listed providers as the application made them. */
export function listedInstances(name: string, discovery: DiscoveryService): object[] {
  return [...listedFor(name, discovery)].flatMap(({ own }) => {
    const made = own.instance as unknown;
    return made !== null && typeof made === 'object' ? [made] : [];
  });
}
