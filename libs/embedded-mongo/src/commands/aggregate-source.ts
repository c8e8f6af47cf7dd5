import type { Collation } from '../bson/collation.js';
import { firstKey, isDocument, type Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { documentOr, optionalCount, optionalDocument, readCollation, readHint } from './arguments.js';
import type { SelectionSpec } from './selection.js';

/** Options of a command or statement that concern how its documents are found. */
export interface SourceOptions {
  readonly hint: unknown;
  readonly collation: Collation | undefined;
  readonly variables: Document | undefined;
}

export const readSourceOptions = (place: Document, collection: Document | undefined): SourceOptions => ({
  hint: readHint(place),
  collation: readCollation(place, collection),
  variables: optionalDocument(place, 'let'),
});

/** What a command or statement selects by the filter in one of its fields. */
export const readSelection = (
  place: Document,
  field: string,
  collection: Document | undefined,
): SelectionSpec => ({
  filter: documentOr(place, field),
  sort: optionalDocument(place, 'sort'),
  skip: optionalCount(place, 'skip'),
  limit: optionalCount(place, 'limit'),
  ...readSourceOptions(place, collection),
});

/** A selection as the stages that answer it on a view. */
export const selectionStages = ({ filter, sort, skip = 0, limit = 0 }: SelectionSpec): Document[] => [
  ...toStages('$match', filter),
  ...toStages('$sort', sort),
  ...(skip > 0 ? [{ $skip: skip }] : []),
  ...(limit > 0 ? [{ $limit: limit }] : []),
];

/** A stage for an argument that says something. */
export const toStages = (stage: string, argument: Document | undefined): Document[] =>
  argument && Object.keys(argument).length > 0 ? [{ [stage]: argument }] : [];

/**
 * The beginning of a pipeline that can be answered as a query: its `$match`es, then `$sort`, `$skip` and `$limit`.
 * What is left has to run as a pipeline.
 */
export function takeLeadingQuery(
  pipeline: readonly Document[],
  options: SourceOptions,
): { spec: SelectionSpec; rest: readonly Document[] } {
  const filters: Document[] = [];
  let at = 0;
  const argument = (stage: string): unknown => {
    const candidate = pipeline[at];
    return candidate && firstKey(candidate) === stage && Object.keys(candidate).length === 1
      ? candidate[stage]
      : undefined;
  };
  for (let match = argument('$match'); isDocument(match); match = argument('$match')) {
    filters.push(match);
    at += 1;
  }
  const wanted = argument('$sort');
  const sort = isDocument(wanted) && isPlainSort(wanted) ? wanted : undefined;
  if (sort) at += 1;
  const skip = whole(argument('$skip'), 0);
  if (skip !== undefined) at += 1;
  const limit = whole(argument('$limit'), 1);
  if (limit !== undefined) at += 1;
  const filter =
    filters.length === 1 ? (filters[0] as Document) : filters.length > 1 ? { $and: filters } : {};
  return { spec: { filter, sort, skip, limit, ...options }, rest: pipeline.slice(at) };
}

/** Anything else goes to the pipeline, which knows what to refuse. */
function isPlainSort(sort: Document): boolean {
  const directions = Object.values(sort);
  return (
    directions.length > 0 &&
    directions.every((one) => numberKind(one) !== undefined && Math.abs(toDouble(one)) === 1)
  );
}

function whole(value: unknown, least: number): number | undefined {
  const number = numberKind(value) === undefined ? NaN : toDouble(value);
  return Number.isSafeInteger(number) && number >= least ? number : undefined;
}
