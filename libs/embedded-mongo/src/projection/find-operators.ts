import { badValue, mongoError } from '../errors.js';
import { getField, isDocument, setField, type Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { compileFilter } from '../query/filter.js';
import { requiresGeoIndex } from '../query/geo.js';
import type { Filter, QueryContext } from '../query/context.js';
import type { ProjectionLeaf } from './projection-tree.js';

/** `$slice: n` or `$slice: [skip, limit]`. Errors: 28667, 28724 and 28725 as the expression of that name. */
export function sliceLeaf(argument: unknown): ProjectionLeaf {
  const numbers = (Array.isArray(argument) ? argument : [argument]) as unknown[];
  if (
    numbers.length < (Array.isArray(argument) ? 2 : 1) ||
    numbers.length > 2 ||
    !numbers.every((item) => numberKind(item) !== undefined)
  ) {
    throw mongoError(28667, 'Invalid $slice syntax: expected a number or an array of two numbers');
  }
  const [first, limit] = numbers.map((item) => Math.trunc(toDouble(item)) || 0) as [
    number,
    number | undefined,
  ];
  if (limit !== undefined && limit <= 0) {
    throw mongoError(
      28724,
      `First argument to $slice must be a number, third argument to $slice must be positive: ${limit}`,
    );
  }
  return {
    kind: 'rewrite',
    rewrite: (value) => (Array.isArray(value) ? sliceArray(value, first, limit) : value),
  };
}

function sliceArray(items: readonly unknown[], first: number, limit: number | undefined): unknown[] {
  if (limit === undefined) return first >= 0 ? items.slice(0, first) : items.slice(first);
  const start = first < 0 ? Math.max(0, items.length + first) : first;
  return items.slice(start, start + limit);
}

/** `$elemMatch` keeps the first matching element, or leaves the field out. Errors: 31275 on a nested path. */
export function elementMatchLeaf(path: string, argument: unknown, ctx: QueryContext): ProjectionLeaf {
  if (path.includes('.')) throw mongoError(31275, 'Cannot use $elemMatch projection on a nested field.');
  if (!isDocument(argument)) throw mongoError(31274, 'elemMatch: Invalid argument, object required');
  refuseInElement(argument);
  const filter = compileFilter({ items: { $elemMatch: argument } }, ctx);
  return {
    kind: 'rewrite',
    rewrite: (value) => {
      if (!Array.isArray(value)) return undefined;
      const index = filter.findMatchedPosition({ items: value });
      return index === undefined ? undefined : [value[index]];
    },
  };
}

/** Errors: 224 and 5626500 for what no element alone can be asked. */
function refuseInElement(argument: Document): void {
  if (Object.hasOwn(argument, '$jsonSchema'))
    throw mongoError(224, '$jsonSchema is not allowed in this context');
  if (requiresGeoIndex(argument))
    throw mongoError(5626500, '$geoNear, $near, and $nearSphere are not allowed in this context');
}

/** `path.$`: of the array at the path only the element that satisfied the filter. */
export function positionalProjection(
  path: string,
  base: (doc: Document) => Document,
  filter: Filter | undefined,
): (doc: Document) => Document {
  if (!filter) throw badValue('positional operator requires a query');
  const parts = path.split('.');
  return (doc) => {
    const narrowed = narrow(doc, parts, filter.findMatchedPosition(doc));
    return base(narrowed as Document);
  };
}

function narrow(value: unknown, parts: readonly string[], index: number | undefined): unknown {
  if (Array.isArray(value)) {
    if (index === undefined) {
      throw mongoError(
        51246,
        "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array",
      );
    }
    if (index >= value.length) throw mongoError(51247, 'positional operator element mismatch');
    return [value[index]];
  }
  const [part, ...rest] = parts;
  if (part === undefined || !isDocument(value) || !Object.hasOwn(value, part)) return value;
  const copy = { ...value };
  setField(copy, part, narrow(getField(value, part), rest, index));
  return copy;
}
