import { mergeFilters, type Where } from '#policy';
import type { PlannedQuery } from '../record-store.js';

type Stage = Readonly<Record<string, unknown>>;
type Stages = readonly Stage[];

/** How the stages of a governed pipeline read other classes: by the first filter of a join, and by the column that it compares. */
export function listJoinedReads(pipeline: Stages): readonly PlannedQuery[] {
  return pipeline.flatMap((stage) => Object.entries(stage).flatMap(([name, value]) => readsOf(name, value)));
}

function readsOf(name: string, value: unknown): readonly PlannedQuery[] {
  if (value === null || typeof value !== 'object') return [];
  const { coll, from, foreignField, connectToField, restrictSearchWithMatch, pipeline } = value as Stage;
  const inner = Array.isArray(pipeline) ? (pipeline as Stages) : [];
  switch (name) {
    case '$unionWith':
      return [read(coll, leadingFilter(inner)), ...listJoinedReads(inner)];
    case '$lookup':
      return [read(from, leadingFilter(inner), foreignField), ...listJoinedReads(inner)];
    case '$graphLookup':
      return [read(from, restrictSearchWithMatch as Where | undefined, connectToField)];
    case '$facet':
      return Object.values(value).flatMap((branch) => listJoinedReads(branch as Stages));
    default:
      return [];
  }
}

/** @param column one that is compared with a value that is not known yet: an index serves all values or none */
function read(className: unknown, filter: Where | undefined, column?: unknown): PlannedQuery {
  const compared = typeof column === 'string' ? { [column]: null } : undefined;
  return { className: String(className), where: mergeFilters(filter, compared) };
}

const leadingFilter = (stages: Stages): Where | undefined => stages[0]?.['$match'] as Where | undefined;
