import { badValue, createParseError, mongoError } from '../errors.js';
import { isDocument, type Document } from '../bson/document.js';
import { printValue } from '../bson/shell-text.js';
import { readChild } from './path-copy.js';
import type { Predicate } from '../query/context.js';

/** One step of an update path. */
type UpdateStep =
  | { readonly kind: 'field'; readonly name: string }
  /** `$`: the element the filter matched. */
  | { readonly kind: 'matched' }
  /** `$[]`: every element. */
  | { readonly kind: 'all' }
  /** `$[id]`: the elements an array filter accepts. */
  | {
      readonly kind: 'filtered';
      readonly identifier: string;
      readonly accepts: (element: unknown) => boolean;
    };

export interface UpdatePath {
  readonly text: string;
  readonly steps: readonly UpdateStep[];
  /** True when the concrete paths depend on the document. */
  readonly dynamic: boolean;
}

export type ArrayFilters = ReadonlyMap<string, { accepts(element: unknown): boolean }>;

/** Errors: 56 for an empty part, 2 for an unknown array filter and a second `$`. */
export function parseUpdatePath(text: string, filters: ArrayFilters): UpdatePath {
  if (text === '') throw mongoError(56, 'An empty update path is not valid.');
  const steps = text.split('.').map((part, i): UpdateStep => {
    if (part === '')
      throw mongoError(56, `The update path '${text}' contains an empty field name, which is not allowed.`);
    if (!part.startsWith('$')) return { kind: 'field', name: part };
    if (i === 0 && (part === '$' || part.startsWith('$['))) {
      throw badValue(`Cannot have positional (i.e. '$') element in the first position in path '${text}'`);
    }
    if (part === '$') return { kind: 'matched' };
    if (part === '$[]') return { kind: 'all' };
    const identifier = /^\$\[(.+)\]$/.exec(part)?.[1];
    if (identifier === undefined) return { kind: 'field', name: part };
    const filter = filters.get(identifier);
    if (!filter) throw badValue(`No array filter found for identifier '${identifier}' in path '${text}'`);
    return { kind: 'filtered', identifier, accepts: (element) => filter.accepts(element) };
  });
  if (steps.filter((step) => step.kind === 'matched').length > 1)
    throw badValue(`Too many positional (i.e. '$') elements found in path '${text}'`);
  return { text, steps, dynamic: steps.some((step) => step.kind !== 'field') };
}

/** Compiles `arrayFilters`. Errors: 9 for an empty, ambiguous or repeated filter, 2 for a bad identifier. */
export function compileArrayFilters(
  filters: readonly unknown[],
  compileFilter: (filter: Document) => Predicate,
): ArrayFilters {
  const compiled = new Map<string, { accepts(element: unknown): boolean }>();
  for (const filter of filters) {
    if (!isDocument(filter)) throw mongoError(14, 'Each array filter must be an object');
    const identifier = findIdentifier(filter);
    if (identifier === undefined) {
      throw createParseError('Cannot use an expression without a top-level field name in arrayFilters');
    }
    if (!/^[a-z][a-zA-Z0-9]*$/.test(identifier)) {
      throw badValue(
        `Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '${identifier}'`,
      );
    }
    if (compiled.has(identifier)) {
      throw createParseError(`Found multiple array filters with the same top-level field name ${identifier}`);
    }
    const predicate = compileFilter(filter);
    compiled.set(identifier, { accepts: (element) => predicate.test({ [identifier]: element }) });
  }
  return compiled;
}

function findIdentifier(filter: Document): string | undefined {
  let found: string | undefined;
  for (const key of Object.keys(filter)) {
    const argument = filter[key];
    const names = key.startsWith('$')
      ? (Array.isArray(argument) ? argument : []).map((part) =>
          isDocument(part) ? findIdentifier(part) : undefined,
        )
      : [key.split('.')[0]];
    for (const name of names) {
      if (name === undefined) continue;
      if (found !== undefined && found !== name) {
        throw createParseError(
          `Error parsing array filter :: caused by :: Expected a single top-level field name, found '${found}' and '${name}'`,
        );
      }
      found = name;
    }
  }
  return found;
}

/** The concrete paths an update path stands for in one document; `matched` is the position that `$` stands for. */
export function resolvePath(path: UpdatePath, doc: Document, matched: number | undefined): string[][] {
  if (!path.dynamic) return [path.steps.map((step) => (step as { name: string }).name)];
  const found: string[][] = [];
  const walk = (value: unknown, depth: number, parts: string[]): void => {
    const step = path.steps[depth];
    if (!step) {
      found.push(parts);
      return;
    }
    if (step.kind === 'field') return walk(readChild(value, step.name), depth + 1, [...parts, step.name]);
    if (step.kind === 'matched') {
      if (matched === undefined) {
        throw badValue('The positional operator did not find the match needed from the query.');
      }
      return walk(readChild(value, String(matched)), depth + 1, [...parts, String(matched)]);
    }
    const prefix = parts.join('.');
    if (value === undefined)
      throw badValue(`The path '${prefix}' must exist in the document in order to apply array updates.`);
    if (!Array.isArray(value))
      throw badValue(`Cannot apply array updates to non-array element ${parts.at(-1)}: ${printValue(value)}`);
    for (const [index, element] of value.entries()) {
      if (step.kind === 'filtered' && !step.accepts(element)) continue;
      walk(element, depth + 1, [...parts, String(index)]);
    }
  };
  walk(doc, 0, []);
  return found;
}
