import { readPath } from '../aggregate/expression.js';
import type { Collation } from '../bson/collation.js';
import { type Document, firstKey, isDocument } from '../bson/document.js';
import { compileSort } from '../bson/keys.js';
import { numberKind, toDouble } from '../bson/number.js';
import { parsePath } from '../bson/path.js';
import type { ScanCounts } from '../planner/index-scan.js';
import { plan, type Planned } from '../planner/plan.js';
import { readMetadata } from '../query/context.js';
import { compileFilter, type Filter } from '../query/filter.js';
import { requiresGeoIndex } from '../query/geo.js';
import { Reader } from '../server/cursors.js';
import type { CommandContext } from '../server/server-state.js';
import { collect, PAUSE, type Rows, rowsFrom, sortInTurns, type Step, toRows } from '../server/steps.js';
import { Collection } from '../storage/catalog.js';
import type { StoredDocument } from '../storage/change.js';
import {
  documentOr,
  optionalCount,
  optionalDocument,
  readCollation,
  readHint,
  optionalNumber,
} from './arguments.js';
import { type CommandQueryContext, queryContext, requireGeoIndex } from './query-context.js';
import { notImplemented } from '../errors.js';

/** Which documents of a collection are wanted, and in what order. */
export interface SelectionSpec {
  readonly filter: Document;
  readonly sort?: Document | undefined;
  readonly skip?: number | undefined;
  /** 0 for all. */
  readonly limit?: number | undefined;
  readonly hint?: unknown;
  readonly collation?: Collation | undefined;
  readonly variables?: Document | undefined;
}

/** A planned query over one collection. */
export class Selection {
  readonly counts: ScanCounts = { keys: 0, documents: 0 };
  readonly planned: Planned;
  readonly filter: Filter;
  readonly queryContext: CommandQueryContext;
  /** What is searched: nothing, where the collection is missing. */
  readonly collection: Collection;
  private readonly distance: ((document: Document) => number) | undefined;

  /** Errors: those of the filter, the sort and the hint; 291 without a geo index. */
  constructor(
    private readonly ctx: CommandContext,
    collection: Collection | undefined,
    readonly spec: SelectionSpec,
    readonly reader: Reader = new Reader(ctx.operation),
  ) {
    const { filter, sort, collation, variables } = spec;
    this.collection = collection ?? new Collection({ db: ctx.db, coll: '' });
    // A malformed query is refused also where there is nothing to search; a missing index is not missed there.
    const hint = collection ? spec.hint : undefined;
    const options = { collation, variables, filter, searchable: !collection };
    this.queryContext = queryContext(ctx, reader, collection, options);
    this.filter = compileFilter(filter, this.queryContext);
    const near = requiresGeoIndex(filter);
    if (near) {
      requireGeoIndex(collection, near);
      const path = parsePath(near.path);
      this.distance = (document) => near.distance(readPath(document, path, 0));
      const found = { ...this.queryContext.found, geoNearDistance: this.distance };
      this.queryContext = { ...this.queryContext, found };
    }
    this.planned = plan(this.collection, { filter, sort: near && !sort ? undefined : sort, hint, collation });
  }

  /** True when results are collected and put in order before the first one is given. */
  get sorts(): boolean {
    const { sort } = this.spec;
    const wanted = sort !== undefined && Object.keys(sort).length > 0;
    return wanted ? !this.planned.winner.sorted : this.distance !== undefined;
  }

  /** Candidates that pass the filter, in the order of the plan. */
  *matches(): Generator<Step<StoredDocument>> {
    const { winner } = this.planned;
    for (const { index } of winner.branches ?? [winner]) if (index) index.accesses.ops += 1;
    for (const step of winner.run(this.counts)) {
      this.reader.tick();
      if (step === PAUSE || this.filter.matches(step.document)) yield step;
      else if (this.reader.turnIsOver) yield PAUSE;
    }
  }

  /** The result: sorted, skipped and limited. */
  async rows(): Promise<Rows<StoredDocument>> {
    const { skip = 0, limit = 0 } = this.spec;
    if (!this.sorts) return rowsFrom(this.matches(), skip, limit);
    const found = await collect(this.ctx.operation, this.matches());
    const ordered = await this.inOrder(found);
    return toRows(ordered.slice(skip, limit > 0 ? skip + limit : undefined));
  }

  private async inOrder(found: StoredDocument[]): Promise<StoredDocument[]> {
    const { sort, collation } = this.spec;
    if (sort === undefined || Object.keys(sort).length === 0) {
      const { distance } = this;
      if (!distance) return found;
      const measured = found.map((stored) => ({ stored, at: distance(stored.document) }));
      const nearest = await sortInTurns(this.ctx.operation, measured, (a, b) => a.at - b.at);
      return nearest.map(({ stored }) => stored);
    }
    const order = compileSort(sort, collation, (name) => readMetadata(name, this.queryContext));
    const keyed = found.map((stored) => ({ stored, keys: order.listKeys(stored.document) }));
    const { operation } = this.ctx;
    const sorted = await sortInTurns(operation, keyed, (a, b) => order.compareKeys(a.keys, b.keys));
    return sorted.map(({ stored }) => stored);
  }
}

/** Options of a command or statement that concern how its documents are found. */
interface SourceOptions {
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

/** The selection of a find command, also used by explain. Errors: 238 for tailable cursors, min, max and the like. */
export function findSpec(command: Document, collectionOptions: Document | undefined): SelectionSpec {
  for (const option of ['tailable', 'awaitData', 'min', 'max', 'returnKey', 'showRecordId']) {
    if (command[option] !== undefined && command[option] !== false)
      throw notImplemented(`the find option '${option}'`);
  }
  return readSelection(command, 'filter', collectionOptions);
}

/** The selection of a count command, also used by explain. */
export function countSpec(command: Document, collectionOptions: Document | undefined): SelectionSpec {
  const { limit: _limit, ...rest } = command;
  // A negative limit means the same as a positive one.
  const limit = Math.abs(Math.trunc(optionalNumber(command, 'limit') ?? 0));
  return { ...readSelection(rest, 'query', collectionOptions), limit };
}
