import { type Document, isDocument } from '../bson/document.js';
import { compareNumbers, isInt32, numberKind, toDouble } from '../bson/number.js';
import { typeName } from '../bson/type-name.js';
import { mongoError } from '../errors.js';
import type { QueryContext } from '../query/context.js';

/** Where an expression is evaluated: the document, the current object, and the bound variables. */
export interface Scope {
  readonly root: unknown;
  readonly current: unknown;
  /** One slot per variable the compiled expression binds. */
  readonly variables: unknown[];
}

/** A compiled expression; undefined is a missing value. */
export type Evaluator = (scope: Scope) => unknown;

/** What an operator's compiler is given. */
export interface Builder {
  readonly ctx: QueryContext;
  compile(expression: unknown): Evaluator;
  /** A builder that knows further variables, and the slots they live in. */
  bind(names: readonly string[]): { builder: Builder; slots: readonly number[] };
}

/** Compiles the argument of one operator. */
export type OperatorCompiler = (argument: unknown, builder: Builder, name: string) => Evaluator;

export type OperatorTable = Readonly<Record<string, OperatorCompiler>>;

/** An expression ready to run against documents. */
export interface Expression {
  /** `current` is what field paths start from when it is not the document itself. */
  evaluate(doc: Document, current?: unknown): unknown;
}

/** Variables on top of outer ones; a later change of an outer value is seen through them. */
export function extendVariables(
  outer: Record<string, unknown> | undefined,
  own: Record<string, unknown>,
): Record<string, unknown> {
  return Object.assign(Object.create(outer ?? null) as Record<string, unknown>, own);
}

/** True for a variable of any level; names that every JS object inherits are none. */
export function hasVariable(variables: Record<string, unknown> | undefined, name: string): boolean {
  let level: unknown = variables;
  while (typeof level === 'object' && level !== null && level !== Object.prototype) {
    if (Object.hasOwn(level, name)) return true;
    level = Object.getPrototypeOf(level) as unknown;
  }
  return false;
}

/** Truth in expressions: false, null, missing and zero are false, everything else is true. */
export function truthy(value: unknown): boolean {
  if (value === true) return true;
  if (value === false || value === null || value === undefined) return false;
  return numberKind(value) === undefined || compareNumbers(value, 0) !== 0;
}

export const nullish = (value: unknown): value is null | undefined => value === null || value === undefined;

/** Whether a part of an expression is a value, and not a path, an operator or something that may hold one. */
export const isConstant = (part: unknown): boolean =>
  typeof part === 'string' ? !part.startsWith('$') : !isDocument(part) && !Array.isArray(part);

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
