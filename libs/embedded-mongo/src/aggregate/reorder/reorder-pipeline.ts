import { type Document, firstKey, isDocument } from '../../bson/document.js';
import { numberKind, toDouble } from '../../bson/number.js';
import type { EvaluationOrder } from '../../query/evaluation-order.js';
import { collectPaths, conjunction, hasPosition, listConjuncts, mayMerge, overlap } from './filter-paths.js';

/** A condition as it has to be written in front of a stage; null when it has to stay behind. */
type Before = (condition: Document, spec: unknown) => Document | null;

/** Behind a stage that changes these paths and no others. */
const unlessChanged =
  (changed: (spec: unknown) => readonly string[] | null): Before =>
  (condition, spec) => {
    const paths = collectPaths(condition);
    const taken = changed(spec);
    if (!paths || !taken) return null;
    return [...paths].some((path) => taken.some((other) => overlap(path, other))) ? null : condition;
  };

const listKeys = (spec: unknown): readonly string[] | null => (isDocument(spec) ? Object.keys(spec) : null);

/** Which `$match` conditions MongoDB's optimiser may evaluate in front of a stage that they are written behind. */
const MOVES_BEFORE: Readonly<Record<string, Before>> = {
  $sort: (condition) => (mayMerge(condition) ? condition : null),
  $addFields: unlessChanged(listKeys),
  $set: unlessChanged(listKeys),
  $unset: unlessChanged((spec) => [spec].flat().filter((path) => typeof path === 'string')),
  $project: behindProject,
  $unwind: unlessChanged((spec) => {
    const { path, includeArrayIndex } = isDocument(spec)
      ? spec
      : { path: spec, includeArrayIndex: undefined };
    return [String(path).slice(1), ...(typeof includeArrayIndex === 'string' ? [includeArrayIndex] : [])];
  }),
  $lookup: unlessChanged(readJoinPath),
  $graphLookup: unlessChanged(readJoinPath),
  $group: behindGroup,
  $sortByCount: (condition, spec) => behindGroup(condition, { _id: spec }),
};

/** What is left of a `$match` in front of and behind the stage before it. */
interface Moved {
  readonly before: Document[];
  readonly stage: Document;
  readonly behind: Document[];
}

/** The stage with as much of the filter in front of it as may be evaluated there; null when none of it may. */
function moveBefore(stage: Document, filter: Document): Moved | null {
  const name = firstKey(stage) ?? '';
  const spec = stage[name];
  if (name === '$unionWith') return intoUnion(spec, filter);
  if (name === '$redact') return besideRedact(stage, filter);
  const rule = MOVES_BEFORE[name];
  if (!rule) return null;
  const before: Document[] = [];
  const behind: Document[] = [];
  for (const condition of listConjuncts(filter)) {
    const moved = rule(condition, spec);
    if (moved) before.push(moved);
    else behind.push(condition);
  }
  return before.length === 0 ? null : { before: toMatchStages(before), stage, behind: toMatchStages(behind) };
}

/** `$lookup`, `$unwind` of what it joined, and a `$match` on that: the filter becomes part of the join. */
function absorbFilter(lookup: Document, unwind: Document, filter: Document): Document[] | null {
  const [join, spread] = [lookup['$lookup'], unwind['$unwind']];
  if (!isDocument(join)) return null;
  const as = String(join['as']);
  const path = isDocument(spread) ? spread['path'] : spread;
  const plain = !isDocument(spread) || Object.keys(spread).every((key) => key === 'path');
  if (!plain || path !== `$${as}`) return null;
  const inside: Document[] = [];
  const behind: Document[] = [];
  for (const condition of listConjuncts(filter)) {
    const paths = collectPaths(condition);
    const own = paths && [...paths].every((one) => one.startsWith(`${as}.`) && !hasPosition(one));
    if (own && !holdsExpression(condition)) inside.push(without(`${as}.`, condition) as Document);
    else behind.push(condition);
  }
  if (inside.length === 0) return null;
  const pipeline = [...(Array.isArray(join['pipeline']) ? join['pipeline'] : []), ...toMatchStages(inside)];
  return [{ $lookup: { ...join, pipeline } }, unwind, ...toMatchStages(behind)];
}

const toMatchStages = (conditions: readonly Document[]): Document[] =>
  conditions.length === 0 ? [] : [{ $match: conjunction(conditions) }];

function readJoinPath(spec: unknown): readonly string[] | null {
  return isDocument(spec) && typeof spec['as'] === 'string' ? [spec['as']] : null;
}

/** Whole columns that are taken out, or kept as they are. */
function behindProject(condition: Document, spec: unknown): Document | null {
  const paths = collectPaths(condition);
  if (!paths || !isDocument(spec)) return null;
  const members = Object.entries(spec);
  const excluded = members.filter(([, value]) => isFlag(value, false));
  if (excluded.length === members.length)
    return unlessChanged(() => excluded.map(([path]) => path))(condition, spec);
  const kept = new Set(members.filter(([, value]) => isFlag(value, true)).map(([path]) => path));
  if (spec['_id'] === undefined) kept.add('_id');
  return [...paths].every((path) => kept.has(path.split('.', 1)[0] ?? '')) ? condition : null;
}

const isFlag = (value: unknown, on: boolean): boolean =>
  value === on || (numberKind(value) !== undefined && (toDouble(value) !== 0) === on);

const COMPARISONS = new Set(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte']);

/** Groups by one column: what is asked of the key can be asked of the column, but for what missing and null have apart. */
function behindGroup(condition: Document, spec: unknown): Document | null {
  const key = isDocument(spec) ? spec['_id'] : undefined;
  if (typeof key !== 'string' || !/^\$[^$.]+$/.test(key)) return null;
  const value: unknown = condition['_id'];
  const operands = isDocument(value) ? Object.entries(value) : [['$eq', value] as const];
  const comparable = operands.every(([operator, operand]) => COMPARISONS.has(operator) && isScalar(operand));
  return '_id' in condition && operands.length > 0 && comparable ? { [key.slice(1)]: value } : null;
}

const isScalar = (value: unknown): boolean => ['string', 'number', 'boolean'].includes(typeof value);

/** Both sides of a union are filtered for themselves. */
function intoUnion(spec: unknown, filter: Document): Moved | null {
  if (!mayMerge(filter)) return null;
  const union: Document = isDocument(spec) ? spec : { coll: spec };
  const pipeline = [...(Array.isArray(union['pipeline']) ? union['pipeline'] : []), { $match: filter }];
  return { before: toMatchStages([filter]), stage: { $unionWith: { ...union, pipeline } }, behind: [] };
}

/** Comparisons with plain values hold before `$redact` wherever they hold behind it, so they are asked twice. */
function besideRedact(stage: Document, filter: Document): Moved | null {
  const safe = listConjuncts(filter).filter((condition) =>
    Object.entries(condition).every(([key, value]) => {
      if (key.startsWith('$')) return false;
      const operands = isDocument(value) ? Object.entries(value) : [['$eq', value] as const];
      return operands.every(
        ([operator, operand]) => operator !== '$ne' && COMPARISONS.has(operator) && isScalar(operand),
      );
    }),
  );
  return safe.length === 0 ? null : { before: toMatchStages(safe), stage, behind: [{ $match: filter }] };
}

function holdsExpression(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsExpression);
  return (
    isDocument(value) &&
    Object.entries(value).some(([key, member]) => key === '$expr' || holdsExpression(member))
  );
}

/** A filter's paths without the beginning that they all have. */
function without(prefix: string, filter: Document): Document {
  return Object.fromEntries(
    Object.entries(filter).map(([key, value]) =>
      key.startsWith('$')
        ? [key, (value as Document[]).map((branch) => without(prefix, branch))]
        : [key.slice(prefix.length), value],
    ),
  );
}

/**
 * A pipeline that has been checked, with its filters where MongoDB's optimiser may evaluate them: adjacent ones merged, moved in
 * front of stages that do not make what they look at, taken into joins and unions; at any depth. Which moves are made is drawn.
 */
export function reorderPipeline(stages: readonly Document[], order: EvaluationOrder): Document[] {
  let current = [...stages];
  // Each pass moves a filter by one stage.
  for (let pass = 0; pass <= stages.length; pass++) current = passOver(current, order);
  return current.map((stage) => inside(stage, order));
}

function passOver(stages: readonly Document[], order: EvaluationOrder): Document[] {
  const done: Document[] = [];
  for (const stage of stages) {
    const filter = stage['$match'];
    const last = done.at(-1);
    if (!isDocument(filter) || !last || !order.chance()) {
      done.push(stage);
      continue;
    }
    const other = last['$match'];
    if (isDocument(other)) {
      if (mayMerge(other) && mayMerge(filter)) done.splice(-1, 1, { $match: { $and: [other, filter] } });
      else done.push(stage);
      continue;
    }
    const joined = done.length > 1 ? absorbFilter(done.at(-2) as Document, last, filter) : null;
    if (joined) {
      done.splice(-2, 2, ...joined);
      continue;
    }
    const moved = moveBefore(last, filter);
    if (moved) done.splice(-1, 1, ...moved.before, moved.stage, ...moved.behind);
    else done.push(stage);
  }
  return done;
}

function inside(stage: Document, order: EvaluationOrder): Document {
  const name = firstKey(stage) ?? '';
  const spec = stage[name];
  if (!isDocument(spec)) return stage;
  if (name === '$facet') {
    const branches = Object.entries(spec).map(([branch, inner]) => [branch, reorderStages(inner, order)]);
    return { $facet: Object.fromEntries(branches) as Document };
  }
  if ((name === '$lookup' || name === '$unionWith') && spec['pipeline'] !== undefined)
    return { [name]: { ...spec, pipeline: reorderStages(spec['pipeline'], order) } };
  return stage;
}

const reorderStages = (stages: unknown, order: EvaluationOrder): unknown =>
  Array.isArray(stages) ? reorderPipeline(stages as Document[], order) : stages;
