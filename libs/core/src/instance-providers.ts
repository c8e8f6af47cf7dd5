import type { FactoryProvider, InjectionToken, Provider, Type } from '@nestjs/common';

/** A symbol for each port that an instance provides to the module of a lib: no plugin can name it. */
const instanceTokens = new Map<InjectionToken, symbol>();

function getInstanceToken(port: InjectionToken): symbol {
  const token = instanceTokens.get(port) ?? Symbol(`${nameOf(port)} of the instance`);
  instanceTokens.set(port, token);
  return token;
}

/** Provides a port that the instance opens, or that a lib above implements. */
export function provideFromInstance(port: InjectionToken): Provider {
  return { provide: port, useExisting: getInstanceToken(port) };
}

/**
 * Provides a port by another provider of its module, unless the instance replaces it: what `overrideProvider` does in
 * tests, for running code.
 */
export function provideReplaceable<T>(port: InjectionToken<T>, own: InjectionToken<T>): FactoryProvider<T> {
  return {
    provide: port,
    useFactory: (made: T, replacement?: T) => replacement ?? made,
    inject: [own, { token: getInstanceToken(port), optional: true }],
  };
}

/** These providers under the tokens where the modules of the libs look for them. @throws TypeError where none does */
export function toInstanceProviders(providers: readonly Provider[]): Exclude<Provider, Type>[] {
  return providers.map((provider) => {
    const made = typeof provider === 'function' ? { provide: provider, useClass: provider } : provider;
    const token = instanceTokens.get(made.provide);
    if (token === undefined) throw new TypeError(`no module takes ${nameOf(made.provide)} from the instance`);
    return { ...made, provide: token };
  });
}

const nameOf = (token: InjectionToken) => (typeof token === 'function' ? token.name : String(token));
