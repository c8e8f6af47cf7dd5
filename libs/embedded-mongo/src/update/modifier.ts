import type { Document } from '../bson/document.js';
import type { QueryContext } from '../query/context.js';
import type { Predicate } from '../query/context.js';

/** A modifier leaves the value alone, or removes the field. */
export const unchanged = Symbol('unchanged');
export const absent = Symbol('absent');

/** What a modifier knows of the place it changes. */
interface Target {
  /** The concrete path, for error texts. */
  readonly path: string;
  readonly doc: Document;
}

/** Computes the new value of one field; `current` is undefined when the field is missing. */
export type Modifier = (current: unknown, target: Target) => unknown;

export interface ModifierContext {
  readonly ctx: QueryContext;
  readonly compileFilter: (filter: Document) => Predicate;
}

/** Reads the argument of one modifier for one field, at compile time. */
export type ModifierCompiler = (argument: unknown, field: string, context: ModifierContext) => Modifier;
