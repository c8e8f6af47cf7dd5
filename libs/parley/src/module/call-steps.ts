import type { CanActivate, NestInterceptor, Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { ConfigError, type ConfigIssue } from '#config';
import type { ApplicationSteps, BeforeAndAfter } from '#dispatcher';

/** Classes of guards or interceptors: a list runs after Parley's own. */
export type StepClasses<Step> =
  readonly Type<Step>[] | { readonly before?: readonly Type<Step>[]; readonly after?: readonly Type<Step>[] };

/** Which guards and interceptors of the application run on the calls of all tools. */
export interface CallSteps {
  /**
   * Classes of guards, which may refuse any call and permit none that Parley refuses. Default: after Parley's gates, and
   * before anybody is asked to approve. `before`: ahead of every gate, the rate limit included.
   */
  readonly guards?: StepClasses<CanActivate>;
  /**
   * Classes of interceptors. Default: around the handler, whose result they may change within the size limit. `before`:
   * around every gate; they see refusals, may refuse, and change no result.
   */
  readonly interceptors?: StepClasses<NestInterceptor>;
}

const isList = <T>(given: readonly T[] | object): given is readonly T[] => Array.isArray(given);

function toPlaces<Step>(given: StepClasses<Step> = []): BeforeAndAfter<Type<Step>> {
  return isList(given)
    ? { before: [], after: given }
    : { before: given.before ?? [], after: given.after ?? [] };
}

const KINDS = { guards: 'canActivate', interceptors: 'intercept' } as const;

/** Untyped code may pass any value, and an instance would be a class of its own to Nest. */
function stepErrors(steps: CallSteps): ConfigIssue[] {
  return Object.entries(KINDS).flatMap(([kind, method]) => {
    const { before, after } = toPlaces<unknown>(steps[kind as keyof CallSteps]);
    return [...before, ...after]
      .filter((type: unknown) => typeof type !== 'function' || typeof type.prototype?.[method] !== 'function')
      .map((type) => ({ path: kind, message: `expected classes with ${method}, found ${describe(type)}` }));
  });
}

const describe = (found: unknown): string => (typeof found === 'function' ? found.name : typeof found);

/**
 * The classes as providers of the module.
 * @throws ConfigError for what is no class of its kind
 */
export function stepProviders(steps: CallSteps): Type[] {
  const errors = stepErrors(steps);
  if (errors.length > 0) throw new ConfigError('options', errors);
  return [steps.guards, steps.interceptors].flatMap((given) => {
    const { before, after } = toPlaces<unknown>(given);
    return [...before, ...after];
  });
}

/**
 * The steps as the application created them.
 * @throws for a step that is made for each request: a call has no Nest request
 */
export function createdSteps({ guards, interceptors }: CallSteps, module: ModuleRef): ApplicationSteps {
  const created = <Step>(given?: StepClasses<Step>): BeforeAndAfter<Step> => {
    const { before, after } = toPlaces(given);
    const find = (type: Type<Step>): Step => module.get<Step>(type);
    return { before: before.map(find), after: after.map(find) };
  };
  return { guards: created(guards), interceptors: created(interceptors) };
}
