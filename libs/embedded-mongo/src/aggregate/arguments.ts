import { type Document, isDocument } from '../bson/document.js';
import { isInt32, numberKind, toDouble } from '../bson/number.js';
import { typeName } from '../bson/type-name.js';
import { mongoError } from '../errors.js';
import { type Builder, type Evaluator, type OperatorCompiler, nullish } from './evaluate.js';

/** Positional arguments, counted. Errors: 16020 for a fixed count, 28667 for a range. */
export function positional(
  argument: unknown,
  builder: Builder,
  name: string,
  min: number,
  max = min,
): Evaluator[] {
  const given: unknown[] = Array.isArray(argument) ? argument : [argument];
  if (given.length < min || given.length > max)
    throw min === max
      ? mongoError(16020, `${name} takes ${min} arguments, not ${given.length}`)
      : mongoError(28667, `${name} takes ${min} to ${max} arguments, not ${given.length}`);
  return given.map((item) => builder.compile(item));
}

/** Named arguments of an object, each compiled when present. Errors: 9 for a missing or unknown name. */
export function readNamedArguments<Required extends string, Optional extends string = never>(
  argument: unknown,
  builder: Builder,
  name: string,
  required: readonly Required[],
  optional: readonly Optional[] = [],
): Record<Required, Evaluator> & Partial<Record<Optional, Evaluator>> {
  const spec = requireDocument(argument, name, 9);
  refuseOthers(spec, [...required, ...optional], name, 9);
  const missing = required.find((key) => !Object.hasOwn(spec, key));
  if (missing !== undefined) throw mongoError(9, `Missing '${missing}' parameter to ${name}`);
  const given = [...required, ...optional].filter((key) => Object.hasOwn(spec, key));
  return Object.fromEntries(given.map((key) => [key, builder.compile(spec[key])])) as Record<
    Required | Optional,
    Evaluator
  >;
}

/** An operator of one value. */
export const unary =
  (apply: (value: unknown, name: string, builder: Builder) => unknown): OperatorCompiler =>
  (argument, builder, name) => {
    const [value] = positional(argument, builder, name, 1) as [Evaluator];
    return (scope) => apply(value(scope), name, builder);
  };

/** An operator of two values. */
export const binary =
  (apply: (a: unknown, b: unknown, name: string, builder: Builder) => unknown): OperatorCompiler =>
  (argument, builder, name) => {
    const [a, b] = positional(argument, builder, name, 2) as [Evaluator, Evaluator];
    return (scope) => apply(a(scope), b(scope), name, builder);
  };

/** An operator of some values. Those left out are undefined, and those given beyond the least number never are. */
export const several =
  (
    min: number,
    max: number,
    apply: (values: unknown[], name: string, builder: Builder) => unknown,
  ): OperatorCompiler =>
  (argument, builder, name) => {
    const all = positional(argument, builder, name, min, max);
    return (scope) =>
      apply(
        all.map((one, i) => (i < min ? one(scope) : (one(scope) ?? null))),
        name,
        builder,
      );
  };

/** An operator of any number of values. */
export const variadic = (apply: Parameters<typeof several>[2]): OperatorCompiler =>
  several(0, Infinity, apply);

/** An operator of named values. Optional ones are undefined where they are left out, and never where they are given. */
export const named =
  <Required extends string, Optional extends string = never>(
    required: readonly Required[],
    optional: readonly Optional[],
    apply: (
      values: Record<Required, unknown> & Partial<Record<Optional, unknown>>,
      name: string,
      builder: Builder,
    ) => unknown,
  ): OperatorCompiler =>
  (argument, builder, name) => {
    const parts = Object.entries<Evaluator>(readNamedArguments(argument, builder, name, required, optional));
    return (scope) => {
      const values = Object.fromEntries(parts.map(([key, one]) => [key, one(scope) ?? null]));
      return apply(values as Record<Required | Optional, unknown>, name, builder);
    };
  };

/** The same for operators that answer null where a value is null or missing. */
export const unaryOrNull = (apply: (value: unknown, name: string) => unknown): OperatorCompiler =>
  unary((value, name) => (nullish(value) ? null : apply(value, name)));
export const binaryOrNull = (apply: (a: unknown, b: unknown, name: string) => unknown): OperatorCompiler =>
  binary((a, b, name) => (nullish(a) || nullish(b) ? null : apply(a, b, name)));

/** Errors: `code` for a member that a specification does not have. */
export function refuseOthers(spec: Document, known: readonly string[], name: string, code: number): void {
  const other = Object.keys(spec).find((key) => !known.includes(key));
  if (other !== undefined) throw mongoError(code, `Unrecognized argument to ${name}: ${other}`);
}

/** Errors: `code` for a member that is left out. */
export function requireMembers(spec: Document, names: readonly string[], name: string, code: number): void {
  const missing = names.find((key) => !Object.hasOwn(spec, key));
  if (missing !== undefined) throw mongoError(code, `${name} requires '${missing}' to be specified`);
}

/** Narrows a value to one type. Errors: the given code for any other. */
const narrow =
  <T>(what: string, is: (value: unknown) => value is T) =>
  (value: unknown, name: string, code: number): T => {
    if (is(value)) return value;
    throw mongoError(code, `${name} requires ${what}, found: ${typeName(value)}`);
  };

export const requireArray = narrow('an array', (value): value is unknown[] => Array.isArray(value));
export const requireText = narrow('a string', (value): value is string => typeof value === 'string');
export const requireDocument = narrow('an object', isDocument);
export const requireNumber = narrow('a number', (value): value is unknown => numberKind(value) !== undefined);

/** A whole 32-bit number argument. */
export function intArgument(value: unknown, name: string, code: number, what: string): number {
  const double = toDouble(value) + 0;
  if (numberKind(value) === undefined || !isInt32(double))
    throw mongoError(code, `${name} requires ${what} to be a 32-bit integer, found: ${typeName(value)}`);
  return double;
}

/** A position that `$indexOfArray` and its kin search from or to. Errors: 40096, 40097 for a negative one. */
export function indexArgument(value: unknown, name: string): number {
  const index = intArgument(value, name, 40096, 'an index argument');
  if (index < 0) throw mongoError(40097, `${name} requires a nonnegative index, found: ${index}`);
  return index;
}
