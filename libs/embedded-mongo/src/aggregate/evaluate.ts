import { type Document, isDocument } from '../bson/document.js';
import { compareNumbers, numberKind } from '../bson/number.js';
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
