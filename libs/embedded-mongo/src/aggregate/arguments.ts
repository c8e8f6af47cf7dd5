import { mongoError } from '../errors.js';
import { isDocument, getField } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { typeName } from '../bson/type-name.js';
import type { Builder, Evaluator, OperatorCompiler } from './evaluate.js';

/** Positional arguments, counted. Errors: 16020 for a fixed count, 28667 for a range. */
export function positional(
  argument: unknown,
  builder: Builder,
  name: string,
  min: number,
  max = min,
): Evaluator[] {
  const given: unknown[] = Array.isArray(argument) ? argument : [argument];
  if (given.length < min || given.length > max) {
    throw min === max
      ? mongoError(
          16020,
          `Expression ${name} takes exactly ${min} arguments. ${given.length} were passed in.`,
        )
      : mongoError(
          28667,
          `Expression ${name} takes at least ${min} arguments, and at most ${max}, but ${given.length} were passed in.`,
        );
  }
  return given.map((item) => builder.compile(item));
}

/** Named arguments of an object, each compiled when present. Errors: 9 for a missing or unknown name. */
export function readNamedArguments<Key extends string>(
  argument: unknown,
  builder: Builder,
  name: string,
  required: readonly Key[],
  optional: readonly Key[] = [],
): Record<Key, Evaluator | undefined> {
  if (!isDocument(argument))
    throw mongoError(9, `${name} requires an object as an argument, found: ${typeName(argument)}`);
  const known: readonly string[] = [...required, ...optional];
  for (const key of Object.keys(argument)) {
    if (!known.includes(key)) throw mongoError(9, `Unrecognized argument to ${name}: ${key}`);
  }
  const compiled: Partial<Record<Key, Evaluator>> = {};
  for (const key of required) {
    if (!Object.hasOwn(argument, key)) throw mongoError(9, `Missing '${key}' parameter to ${name}`);
  }
  for (const key of [...required, ...optional]) {
    if (Object.hasOwn(argument, key)) compiled[key] = builder.compile(getField(argument, key));
  }
  return compiled as Record<Key, Evaluator | undefined>;
}

/** An operator of one value. */
export const unary =
  (apply: (value: unknown, name: string) => unknown): OperatorCompiler =>
  (argument, builder, name) => {
    const [value] = positional(argument, builder, name, 1) as [Evaluator];
    return (scope) => apply(value(scope), name);
  };

/** An operator of two values. */
export const binary =
  (apply: (a: unknown, b: unknown, name: string) => unknown): OperatorCompiler =>
  (argument, builder, name) => {
    const [a, b] = positional(argument, builder, name, 2) as [Evaluator, Evaluator];
    return (scope) => apply(a(scope), b(scope), name);
  };

/** An operator of any number of values. */
export const variadic =
  (apply: (values: unknown[], name: string, builder: Builder) => unknown): OperatorCompiler =>
  (argument, builder, name) => {
    const all = positional(argument, builder, name, 0, Infinity);
    return (scope) =>
      apply(
        all.map((one) => one(scope)),
        name,
        builder,
      );
  };

/** A whole 32-bit number argument. */
export function intArgument(value: unknown, name: string, code: number, what: string): number {
  const double = toDouble(value);
  if (numberKind(value) === undefined || !Number.isInteger(double) || Math.abs(double) > 0x7fffffff) {
    throw mongoError(code, `${name} requires ${what} to be a 32-bit integer, found: ${typeName(value)}`);
  }
  return double;
}
