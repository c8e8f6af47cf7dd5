import type { DynamicModule, ForwardReference, InjectionToken, Provider, Type } from '@nestjs/common';

type Imported = Type<unknown> | DynamicModule | Promise<DynamicModule> | ForwardReference;

const tokenOf = (provider: Provider): InjectionToken =>
  typeof provider === 'function' ? provider : provider.provide;

/** The decorator's own providers: Nest makes them before those of the dynamic module, which replace them by token. */
const declaredBy = ({ module }: DynamicModule): readonly Provider[] =>
  (Reflect.getMetadata('providers', module) as readonly Provider[] | undefined) ?? [];

/**
 * Returns the same modules with these providers instead of the providers of their tokens, wherever they are provided:
 * like `overrideProvider` in tests, but for a running application. An override injects the providers visible at that
 * place. Shared modules stay shared.
 * @throws TypeError naming a token that no module provides
 */
export function overrideProviders(root: DynamicModule, overrides: readonly Provider[]): DynamicModule {
  if (overrides.length === 0) return root;
  const byToken = new Map(overrides.map((provider) => [tokenOf(provider), provider]));
  const unused = new Set(byToken.keys());
  const done = new Map<DynamicModule, DynamicModule>();
  const overridden = (module: DynamicModule): DynamicModule => {
    const known = done.get(module);
    if (known) return known;
    const override = (provider: Provider): Provider | undefined => {
      const token = tokenOf(provider);
      unused.delete(token);
      return byToken.get(token);
    };
    const made: DynamicModule = {
      ...module,
      imports: (module.imports ?? []).map((one: Imported) => (isDynamic(one) ? overridden(one) : one)),
      providers: [
        ...(module.providers ?? []).map((provider) => override(provider) ?? provider),
        ...declaredBy(module).flatMap((provider) => override(provider) ?? []),
      ],
    };
    done.set(module, made);
    return made;
  };
  const result = overridden(root);
  const [missing] = unused;
  if (missing !== undefined)
    throw new TypeError(
      `no module provides ${typeof missing === 'function' ? missing.name : String(missing)}`,
    );
  return result;
}

const isDynamic = (imported: Imported): imported is DynamicModule =>
  typeof imported === 'object' && 'module' in imported;
