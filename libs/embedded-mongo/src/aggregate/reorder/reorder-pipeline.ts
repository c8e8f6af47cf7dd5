import { firstKey, isDocument, type Document } from '../../bson/document.js';
import type { EvaluationOrder } from '../../query/evaluation-order.js';
import { mayMerge } from './filter-paths.js';
import { absorbFilter, moveBefore } from './match-moves.js';

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
