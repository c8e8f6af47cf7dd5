import type { Collation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { type Document, isDocument } from '../bson/document.js';
import { toDouble } from '../bson/number.js';
import { mongoError } from '../errors.js';
import { PAUSE, type Step, STEPS_PER_PAUSE } from '../server/steps.js';
import type { Collection } from '../storage/catalog.js';
import type { StoredDocument } from '../storage/change.js';
import type { CollectionIndex } from '../storage/collection-index.js';
import { isWildcard } from '../storage/index-spec.js';
import { excludesNull, type IndexCondition, listConditions } from './conditions.js';
import type { IndexBounds, ScanCounts } from './index-scan.js';
import { findBounds, holdsAllMatches, IndexScan, sortDirection } from './index-scan.js';

/** What is to be found, as far as it decides how to look. */
export interface PlanRequest {
  readonly filter: Document;
  readonly sort?: Document | undefined;
  /** An index name, a key pattern or `{$natural: 1}`. */
  readonly hint?: unknown;
  readonly collation?: Collation | undefined;
  /** False looks at every document, whatever indexes there are. */
  readonly useIndexes?: boolean;
}

/** How the documents are looked for; `run` gives candidates that still have to pass the filter. */
export interface Plan {
  readonly kind: 'COLLSCAN' | 'IXSCAN' | 'IDHACK' | 'OR';
  readonly index?: CollectionIndex;
  readonly bounds?: IndexBounds;
  readonly direction: 1 | -1;
  /** True when candidates come in the order of the sort. */
  readonly sorted: boolean;
  /** Keys the plan has to look at, where known before it runs. */
  readonly cost: number;
  /** The plans of the branches of `$or`. */
  readonly branches?: readonly Plan[];
  run(counts: ScanCounts): Generator<Step<StoredDocument>>;
}

/** The chosen plan, and the other indexes that would have served. */
export interface Planned {
  readonly winner: Plan;
  readonly rejected: readonly Plan[];
}

type SortFields = readonly (readonly [string, 1 | -1])[];

/** Chooses how to find documents. Errors: 2 when the hint names no index. */
export function plan(collection: Collection, request: PlanRequest): Planned {
  const natural = naturalDirection(request);
  if (natural !== undefined)
    return { winner: collectionScan(collection, natural, naturalSort(request)), rejected: [] };
  const sort = sortFields(request.sort);
  const hinted = request.hint === undefined ? undefined : findHintedIndex(collection, request.hint);
  const unsorted = collectionScan(collection, 1, sort?.length === 0);
  if (hinted) {
    const { ordered } = hinted.definition;
    const winner = ordered ? indexPlan(collection, hinted, request, sort) : heldDocuments(unsorted, hinted);
    return { winner, rejected: [] };
  }
  if (request.useIndexes === false) return { winner: unsorted, rejected: [] };

  const conditions = listConditions(request.filter);
  const candidates = collection.indexes
    .filter(
      (index) =>
        index.definition.ordered &&
        index.spec['hidden'] !== true &&
        holdsAllMatches(index, conditions, request.collation),
    )
    .map((index) => indexPlan(collection, index, request, sort, conditions));
  const bounded = candidates.filter((one) => one.bounds?.some((field) => field !== undefined));
  if (bounded.length > 0) return best(bounded);
  const either = orPlan(collection, request, sort);
  if (either) return { winner: either, rejected: [] };
  const special = collection.indexes.find((index) => servesByName(index, conditions, request.collation));
  if (special)
    return { winner: { ...heldDocuments(unsorted, special), kind: 'IXSCAN', index: special }, rejected: [] };
  const ordering = sort?.length ? candidates.filter((one) => one.sorted) : [];
  return ordering.length > 0 ? best(ordering) : { winner: unsorted, rejected: [] };
}

/** Fewest keys first; then an order that saves the sort; then the index that uses more of the filter. */
function best(plans: readonly Plan[]): Planned {
  const countUsed = (one: Plan): number => one.bounds?.filter((field) => field !== undefined).length ?? 0;
  const price = (one: Plan): number =>
    one.kind === 'IDHACK' ? -1 : one.sorted ? one.cost : one.cost * 1.2 + 1;
  const [winner, ...rejected] = plans.toSorted((a, b) => price(a) - price(b) || countUsed(b) - countUsed(a));
  return { winner: winner as Plan, rejected };
}

function collectionScan(collection: Collection, direction: 1 | -1, sorted = false): Plan {
  const records = collection.snapshotRecords();
  return {
    kind: 'COLLSCAN',
    direction,
    sorted,
    cost: records.size,
    *run(counts) {
      let steps = 0;
      for (const stored of records.range(0, records.size, direction < 0)) {
        counts.documents += 1;
        steps += 1;
        if (steps % STEPS_PER_PAUSE === 0) yield PAUSE;
        yield stored;
      }
    },
  };
}

/** What a scan of an index without an order finds: it leaves out what it does not hold. */
function heldDocuments(scan: Plan, { definition }: CollectionIndex): Plan {
  return {
    ...scan,
    *run(counts) {
      for (const step of scan.run(counts)) if (step === PAUSE || definition.holds(step.document)) yield step;
    },
  };
}

/** Whether MongoDB would look into a geo or wildcard index, whose keys are not kept here: it scans and says what was meant. */
function servesByName(
  index: CollectionIndex,
  conditions: readonly IndexCondition[],
  collation: Collation | undefined,
): boolean {
  const { spec, definition } = index;
  if (spec['hidden'] === true || !holdsAllMatches(index, conditions, collation)) return false;
  return Object.entries(spec.key).some(([field, kind]) => {
    if (kind === '2d' || kind === '2dsphere')
      return conditions.some((one) => one.field === field && /^\$(geoW|w)ithin$|^\$geoIn/.test(one.operator));
    if (definition.fields.length > 1 || spec['wildcardProjection'] !== undefined) return false;
    const covers = (path: string): boolean => field === '$**' || path.startsWith(field.slice(0, -3));
    return isWildcard(field) && conditions.some((one) => covers(one.field) && excludesNull(one));
  });
}

function indexPlan(
  collection: Collection,
  index: CollectionIndex,
  request: PlanRequest,
  sort: SortFields | undefined,
  conditions: readonly IndexCondition[] = listConditions(request.filter),
): Plan {
  const bounds = findBounds(index, conditions, request.collation);
  const scan = new IndexScan(collection, index, bounds);
  const covered = sort && sortDirection(index, bounds, sort, request.collation);
  const direction = covered ?? 1;
  return {
    kind: isIdLookup(index, request) ? 'IDHACK' : 'IXSCAN',
    index,
    bounds,
    direction,
    sorted: covered !== undefined,
    cost: scan.cost,
    run: (counts) => scan.run(direction, counts),
  };
}

/** A filter that is nothing but one `_id`. */
function isIdLookup(index: CollectionIndex, { filter, collation }: PlanRequest): boolean {
  if (index.spec.name !== '_id_' || collation !== undefined) return false;
  const id = filter['_id'];
  return (
    Object.keys(filter).length === 1 &&
    id !== undefined &&
    id !== null &&
    !Array.isArray(id) &&
    !isDocument(id)
  );
}

/** Every branch of a `$or` by its own index; undefined when one of them has none. */
function orPlan(
  collection: Collection,
  request: PlanRequest,
  sort: SortFields | undefined,
): Plan | undefined {
  const branches = request.filter['$or'];
  if (!Array.isArray(branches) || branches.length === 0 || sort === undefined || sort.length > 0)
    return undefined;
  const plans: Plan[] = [];
  for (const branch of branches) {
    if (!isDocument(branch)) return undefined;
    const { winner } = plan(collection, { filter: branch, collation: request.collation });
    if (winner.kind === 'COLLSCAN' || !(winner.branches ?? [winner]).every((one) => one.bounds))
      return undefined;
    plans.push(winner);
  }
  return {
    kind: 'OR',
    direction: 1,
    sorted: true,
    cost: plans.reduce((sum, one) => sum + one.cost, 0),
    branches: plans,
    *run(counts) {
      const seen = new Set<number>();
      for (const one of plans) {
        for (const step of one.run(counts)) {
          if (step !== PAUSE) {
            if (seen.has(step.recordId)) continue;
            seen.add(step.recordId);
          }
          yield step;
        }
      }
    },
  };
}

/** The sort as fields and directions; undefined when it is by something other than fields. */
function sortFields(sort: Document | undefined): SortFields | undefined {
  const fields: [string, 1 | -1][] = [];
  for (const [field, direction] of Object.entries(sort ?? {})) {
    if (isDocument(direction)) return undefined;
    fields.push([field, toDouble(direction) < 0 ? -1 : 1]);
  }
  return fields;
}

function naturalDirection({ sort, hint }: PlanRequest): 1 | -1 | undefined {
  for (const place of [sort, hint]) {
    if (isDocument(place) && place['$natural'] !== undefined) return toDouble(place['$natural']) < 0 ? -1 : 1;
  }
  return undefined;
}

function findHintedIndex(collection: Collection, hint: unknown): CollectionIndex {
  const found = collection.indexes.find(({ spec }) =>
    typeof hint === 'string' ? spec.name === hint : compareValues(spec.key, hint) === 0,
  );
  if (found && found.spec['hidden'] !== true) return found;
  throw mongoError(2, 'hint provided does not correspond to an existing index');
}

const naturalSort = ({ sort }: PlanRequest): boolean =>
  sort === undefined || Object.keys(sort).length === 0 || sort['$natural'] !== undefined;
