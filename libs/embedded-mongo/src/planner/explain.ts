import { MaxKey, MinKey } from 'bson';
import { type Document, isDocument } from '../bson/document.js';
import { shellText } from '../bson/text.js';
import { excludesNull, type Interval, isPoint, listConditions, toIntervals } from './conditions.js';
import type { IndexBounds, ScanCounts } from './index-scan.js';
import type { Plan, Planned } from './plan.js';
import { truthy } from '../aggregate/evaluate.js';
import { IndexDefinition } from '../storage/collection-index.js';

/** What happens to the documents that a plan finds. */
export interface PlanShape {
  /** What is wanted of them, where it is not the documents: their number, or the values of one field. */
  readonly wanted?: 'count' | { readonly distinct: string } | undefined;
  readonly filter: Document;
  readonly sort: Document | undefined;
  /** True when the plan's own order is not the wanted one. */
  readonly sorts: boolean;
  readonly skip: number;
  readonly limit: number;
  readonly projection: Document | undefined;
}

/** What running the plan took. */
export interface Execution {
  readonly returned: number;
  readonly counts: ScanCounts;
  readonly millis: number;
}

/** The winning and the rejected plans as MongoDB shows them. */
export function queryPlanner(namespace: string, planned: Planned, shape: PlanShape): Document {
  return {
    namespace,
    parsedQuery: shape.filter,
    indexFilterSet: false,
    optimizedPipeline: false,
    maxIndexedOrSolutionsReached: false,
    maxIndexedAndSolutionsReached: false,
    maxScansToExplodeReached: false,
    prunedSimilarIndexes: false,
    winningPlan: { isCached: false, ...stages(planned.winner, shape) },
    rejectedPlans: planned.rejected.map((one) => stages(one, shape)),
  };
}

export function executionStats(
  planned: Planned,
  shape: PlanShape,
  run: Execution,
  allPlans: boolean,
): Document {
  return {
    executionSuccess: true,
    nReturned: run.returned,
    executionTimeMillis: run.millis,
    totalKeysExamined: run.counts.keys,
    totalDocsExamined:
      isCovered(planned.winner, shape) || countsAll(planned.winner, shape) ? 0 : run.counts.documents,
    executionStages: measureStage(stages(planned.winner, shape), run),
    ...(allPlans ? { allPlansExecution: candidates(planned, shape) } : {}),
  };
}

/** The plans that stood for choice, where there was one. */
const candidates = ({ winner, rejected }: Planned, shape: PlanShape): Document[] =>
  rejected.length === 0 ? [] : [winner, ...rejected].map((one) => ({ executionStages: stages(one, shape) }));

/** The plan of a collection that does not exist, and what it takes. */
export const explainMissingCollection = (namespace: string, filter: Document): Document => ({
  queryPlanner: {
    namespace,
    parsedQuery: filter,
    indexFilterSet: false,
    winningPlan: { isCached: false, stage: 'EOF' },
    rejectedPlans: [],
  },
  executionStats: {
    executionSuccess: true,
    nReturned: 0,
    executionTimeMillis: 0,
    totalKeysExamined: 0,
    totalDocsExamined: 0,
    executionStages: { stage: 'EOF' },
  },
});

function stages(plan: Plan, shape: PlanShape): Document {
  if (countsAll(plan, shape)) return { stage: 'RECORD_STORE_FAST_COUNT' };
  let stage = access(plan, shape);
  if (shape.sorts) {
    stage = {
      stage: 'SORT',
      sortPattern: shape.sort ?? {},
      memLimit: 104857600,
      ...(shape.limit > 0 ? { limitAmount: shape.limit + shape.skip } : {}),
      type: 'simple',
      inputStage: stage,
    };
  }
  if (shape.skip > 0) stage = { stage: 'SKIP', skipAmount: shape.skip, inputStage: stage };
  if (shape.limit > 0 && !shape.sorts)
    stage = { stage: 'LIMIT', limitAmount: shape.limit, inputStage: stage };
  if (shape.wanted === 'count') return { stage: 'COUNT', inputStage: stage };
  const { projection } = shape;
  if (stage['stage'] === 'IXSCAN' || stage['stage'] === 'DISTINCT_SCAN') {
    const transformBy =
      projection ?? Object.fromEntries([['_id', 0], ...listAsked(shape).map((name) => [name, 1])]);
    return { stage: 'PROJECTION_COVERED', transformBy, inputStage: stage };
  }
  if (projection && Object.keys(projection).length > 0) {
    const simple = Object.entries(projection).every(
      ([path, value]) => !path.includes('.') && !isDocument(value),
    );
    stage = {
      stage: simple ? 'PROJECTION_SIMPLE' : 'PROJECTION_DEFAULT',
      transformBy: projection,
      inputStage: stage,
    };
  }
  return stage;
}

function access(plan: Plan, shape: PlanShape): Document {
  const filter = Object.keys(shape.filter).length > 0 ? { filter: shape.filter } : {};
  const direction = plan.direction > 0 ? 'forward' : 'backward';
  if (plan.kind === 'COLLSCAN') return { stage: 'COLLSCAN', ...filter, direction };
  if (plan.kind === 'OR') {
    const inputStages = plan.branches?.map((branch) => indexScan(branch)) ?? [];
    return { stage: 'FETCH', ...filter, inputStage: { stage: 'OR', inputStages } };
  }
  if (plan.kind === 'IDHACK') return { stage: 'IDHACK', keyPattern: { _id: 1 }, indexName: '_id_' };
  if (!isCovered(plan, shape)) return { stage: 'FETCH', ...filter, inputStage: indexScan(plan) };
  const scan = indexScan(plan);
  if (shape.wanted === undefined) return scan;
  if (shape.wanted !== 'count') return { ...scan, stage: 'DISTINCT_SCAN' };
  const ends = countedEnds(plan);
  return ends ? { ...scan, stage: 'COUNT_SCAN', indexBounds: ends } : scan;
}

/** The number of all documents is known without a look at them. */
const countsAll = ({ kind }: Plan, { wanted, filter }: PlanShape): boolean =>
  wanted === 'count' && kind === 'COLLSCAN' && Object.keys(filter).length === 0;

/** The fields that are wanted of each document. */
function listAsked({ wanted, projection }: PlanShape): string[] {
  if (wanted === 'count') return [];
  if (wanted) return [wanted.distinct];
  return ['_id', ...Object.keys(projection ?? {})].filter((name) =>
    truthy(projection?.[name] ?? name === '_id'),
  );
}

/** Whether the keys of the index hold all that is asked for, so that MongoDB looks at no document. */
function isCovered({ kind, index, bounds }: Plan, shape: PlanShape): boolean {
  if (kind !== 'IXSCAN' || !index || !bounds || index.multikey || index.definition.collation) return false;
  const { filter, projection = {}, wanted, sort } = shape;
  const asked = listAsked(shape);
  const values = Object.values(projection);
  if (!wanted && !(asked.length > 0 && values.some(truthy) && !values.some((one) => isDocument(one))))
    return false;
  const held = (name: string): boolean => index.definition.fields.includes(name);
  const flat = Object.entries(filter).every(
    ([name, value]) => !name.startsWith('$') || (name === '$and' && Array.isArray(value)),
  );
  return (
    flat &&
    [...asked, ...Object.keys(sort ?? {})].every(held) &&
    listConditions(filter).every(
      (one) => held(one.field) && one.operator !== '$regex' && excludesNull(one) && toIntervals(one, true),
    )
  );
}

/** Both ends of a scan that only counts; undefined when it is of several stretches. */
function countedEnds({ index, bounds = [] }: Plan): Document | undefined {
  const last = bounds.findLastIndex((field) => field !== undefined);
  const fields = bounds.slice(0, last + 1).map((field) => (field?.length === 1 ? field[0] : undefined));
  if (!index || !fields.every((one, i) => one && (i === last || isPoint(one)))) return undefined;
  const descends = index.definition.directions[last] === -1;
  const key = (end: 'low' | 'high'): Document =>
    Object.fromEntries(
      index.definition.fields.map((name, i) => [
        name,
        fields[i]?.[end] ?? (end === 'low' ? new MinKey() : new MaxKey()),
      ]),
    );
  const [from, to] = descends ? (['high', 'low'] as const) : (['low', 'high'] as const);
  return {
    startKey: key(from),
    startKeyInclusive: fields[last]?.[`${from}In`],
    endKey: key(to),
    endKeyInclusive: fields[last]?.[`${to}In`],
  };
}

function indexScan(plan: Plan): Document {
  const { index, bounds = [] } = plan;
  if (!index) return { stage: 'OR', inputStages: plan.branches?.map(indexScan) ?? [] };
  return {
    stage: 'IXSCAN',
    keyPattern: index.spec.key,
    indexName: index.spec.name,
    ...(index.definition.collation ? { collation: index.definition.collation.spec } : {}),
    isMultiKey: index.multikey,
    isUnique: index.definition.unique,
    isSparse: index.definition.sparse,
    isPartial: index.spec['partialFilterExpression'] !== undefined,
    indexVersion: 2,
    direction: plan.direction > 0 ? 'forward' : 'backward',
    indexBounds: boundsText(index.definition, bounds, plan.direction),
  };
}

function boundsText({ fields, directions }: IndexDefinition, bounds: IndexBounds, scan: 1 | -1): Document {
  const texts = fields.map((field, i) => {
    const backwards = (directions[i] ?? 1) * scan < 0;
    const intervals = bounds[i] ?? [{ low: new MinKey(), high: new MaxKey(), lowIn: true, highIn: true }];
    const shown = intervals.map((interval) => intervalText(interval, backwards));
    return [field, backwards ? shown.toReversed() : shown];
  });
  return Object.fromEntries(texts) as Document;
}

function intervalText({ low, high, lowIn, highIn }: Interval, backwards: boolean): string {
  const from = backwards ? high : low;
  const to = backwards ? low : high;
  const fromIn = backwards ? highIn : lowIn;
  const toIn = backwards ? lowIn : highIn;
  return `${fromIn ? '[' : '('}${shellText(from)}, ${shellText(to)}${toIn ? ']' : ')'}`;
}

/** The stages with what they did; the upper ones pass on what the scan found. */
function measureStage(stage: Document, run: Execution): Document {
  const { inputStage, ...rest } = stage;
  const scan = ['IXSCAN', 'COUNT_SCAN', 'DISTINCT_SCAN'].includes(String(rest['stage']));
  const leaf = scan || rest['stage'] === 'COLLSCAN' || rest['stage'] === 'IDHACK';
  const nReturned = scan ? run.counts.documents : run.returned;
  return {
    ...rest,
    nReturned,
    executionTimeMillisEstimate: run.millis,
    works: Math.max(run.counts.keys, run.counts.documents) + 1,
    advanced: nReturned,
    isEOF: 1,
    ...(scan ? { keysExamined: run.counts.keys } : {}),
    ...(rest['stage'] === 'FETCH' || (leaf && !scan) ? { docsExamined: run.counts.documents } : {}),
    ...(isDocument(inputStage) ? { inputStage: measureStage(inputStage, run) } : {}),
  };
}
