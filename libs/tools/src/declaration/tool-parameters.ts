import 'reflect-metadata';
import type { PipeTransform, Type } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import type { DecoratedClass } from '#schema';

/** Where Nest stores what the decorator of a parameter says: by `KIND:POSITION`. */
type Parameters = Readonly<Record<string, Parameter>>;

interface Parameter {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes: readonly (Type<PipeTransform> | PipeTransform)[];
}

/** What `createParamDecorator` puts into the key of its parameters. */
const CUSTOM = '__customRouteArgs__';
/** Nest's number for a request body and for the payload of a message. */
const BODY_PARAM_TYPE = 3;
/** Of this package. Nest's own numbers end at 13. */
const CALL_PARAM_TYPE = 4096;

/**
 * The arguments of the call, or one of them: `overdue(@Payload() args: OverdueArguments)`. Only a tool without any parameter
 * decorator receives them as its first parameter without this.
 */
export function Payload(
  property?: string | Type<PipeTransform> | PipeTransform,
  ...pipes: (Type<PipeTransform> | PipeTransform)[]
): ParameterDecorator {
  if (property === undefined || typeof property === 'string')
    return decorate(BODY_PARAM_TYPE, property, pipes);
  return decorate(BODY_PARAM_TYPE, undefined, [property, ...pipes]);
}

/** The call of a tool, with its governed data access: `overdue(@Ctx() call: ToolCall)`. */
export function Ctx(): ParameterDecorator {
  return decorate(CALL_PARAM_TYPE, undefined, []);
}

function decorate(kind: number, data: string | undefined, pipes: Parameter['pipes']): ParameterDecorator {
  return (target, name, index) => {
    if (name === undefined) throw new TypeError('@Payload and @Ctx are for parameters of methods');
    const type = target.constructor;
    const others = Reflect.getMetadata(ROUTE_ARGS_METADATA, type, name) as Parameters | undefined;
    const parameters = { ...others, [`${kind}:${index}`]: { index, data, pipes } };
    Reflect.defineMetadata(ROUTE_ARGS_METADATA, parameters, type, name);
  };
}

/**
 * The class that the compiler recorded (`emitDecoratorMetadata`) as the type of the arguments: of the parameter with
 * `@Payload()`, or of the first one where no parameter has a decorator. Null for interfaces and for other types.
 */
export function readArgumentsClass(prototype: object, name: string | symbol): DecoratedClass | null {
  const decorated = Reflect.getMetadata(ROUTE_ARGS_METADATA, prototype.constructor, name) as
    Parameters | undefined;
  const whole = Object.entries(decorated ?? {}).find(
    ([key, { data }]) => key.startsWith(`${BODY_PARAM_TYPE}:`) && data === undefined,
  );
  const types = Reflect.getMetadata('design:paramtypes', prototype, name) as unknown[] | undefined;
  const type = types?.[decorated ? (whole?.[1].index ?? -1) : 0];
  return typeof type === 'function' && type !== Object ? (type as DecoratedClass) : null;
}

/** The class of an instance, and the one that declares the method where a mixin or a wrapper hides it. */
function listHosts(instance: object, methodName: string): readonly object[] {
  let level = Object.getPrototypeOf(instance) as object | null;
  while (level && !Object.hasOwn(level, methodName)) level = Object.getPrototypeOf(level) as object | null;
  return [...new Set([instance.constructor, level?.constructor ?? instance.constructor])];
}

/** What the decorators of the parameters of a method say. */
function listDecorated(instance: object, methodName: string): [string, Parameter][] {
  const found = listHosts(instance, methodName).map(
    (host) => Reflect.getMetadata(ROUTE_ARGS_METADATA, host, methodName) as Parameters | undefined,
  );
  return Object.entries(found.find((parameters) => parameters !== undefined) ?? {});
}

/** How the parameters of a tool are filled in. */
export interface ToolParameters {
  /** Those that Nest fills in. */
  readonly byNest: Parameters;
  /** The positions of the call, which no pipe receives. */
  readonly calls: readonly number[];
}

const THE_ARGUMENTS: Parameter = { index: 0, data: undefined, pipes: [] };

/**
 * Reads the parameter decorators of a tool. What the agent sent is in the place of no parameter whose decorator says
 * something else. Without a decorator the arguments come first, and the call second.
 * @returns null: no parameter has a decorator
 * @throws TypeError for a decorator of another transport, two on one parameter, and none behind a decorated parameter
 */
export function readParameters(instance: object, methodName: string): ToolParameters | null {
  const given = listDecorated(instance, methodName);
  if (given.length === 0) return null;
  const fail = (index: number, problem: string): never => {
    throw new TypeError(`${nameMethod(instance, methodName)}: parameter ${index} ${problem}`);
  };
  const byNest: Record<string, Parameter> = {};
  const calls: number[] = [];
  const positions = new Set<number>();
  for (const [key, parameter] of given) {
    const { index } = parameter;
    if (positions.has(index)) fail(index, 'has two decorators that fill it in');
    positions.add(index);
    if (key.includes(CUSTOM) || key.startsWith(`${BODY_PARAM_TYPE}:`)) byNest[key] = parameter;
    else if (key.startsWith(`${CALL_PARAM_TYPE}:`)) calls.push(index);
    else fail(index, `has a decorator of another transport: ${INSTEAD}`);
  }
  const first = Math.min(...positions);
  const { length } = Reflect.get(instance, methodName) as { readonly length: number };
  for (let index = first; index < length; index += 1)
    if (!positions.has(index)) fail(index, `has no decorator, and one before it has: ${INSTEAD}`);
  if (first > 0) byNest[`${BODY_PARAM_TYPE}:0`] = THE_ARGUMENTS;
  if (first > 1) calls.push(1);
  return { byNest, calls };
}

/** Those of a tool without decorated parameters whose arguments pass pipes. */
export const UNDECORATED_PARAMETERS: ToolParameters = {
  byNest: { [`${BODY_PARAM_TYPE}:0`]: THE_ARGUMENTS },
  calls: [1],
};

const INSTEAD = 'write @Payload() or @Ctx() of @parley/server, or a decorator made with createParamDecorator';

const FILLED_BY_NEST = 'parley:tool-parameters';

/** @returns the key under which Nest finds the parameters that it fills in */
export function defineParameters(instance: object, methodName: string, { byNest }: ToolParameters): string {
  for (const host of listHosts(instance, methodName))
    Reflect.defineMetadata(FILLED_BY_NEST, byNest, host, methodName);
  return FILLED_BY_NEST;
}

/** What a parameter receives of the arguments. */
export function pickArguments(kind: number, property: unknown, args: unknown): unknown {
  if (kind !== BODY_PARAM_TYPE) return undefined;
  if (typeof property !== 'string') return args;
  return Object.hasOwn(args as object, property) ? (args as Record<string, unknown>)[property] : undefined;
}

const nameMethod = (instance: object, methodName: string) => `${instance.constructor.name}.${methodName}`;

/**
 * Ends the start for a decorated parameter of a method that is no tool: nothing would evaluate it.
 * @param kind the decorator of the method
 * @throws TypeError
 */
export function refuseDecoratedParameters(instance: object, methodName: string, kind: string): void {
  if (listDecorated(instance, methodName).length > 0)
    throw new TypeError(
      `${nameMethod(instance, methodName)}: decorators of parameters work on methods with @Tool, not with ${kind}: ` +
        'read the agent from the call',
    );
}
