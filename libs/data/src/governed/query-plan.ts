import { type Agent, type Refusal, refusals, Refused, isJsonObject } from '#core';
import {
  type AgentScope,
  type ClassAccess,
  listConstrainedFields,
  type IndexSchema,
  isPlainObject,
  redact,
  takeRoot,
  type Where,
  mergeFilters,
} from '#policy';
import { type PlannedQuery, type QueryPlan, StoreError } from '../record-store.js';
import type { GovernedCall, PredicateOptions } from './governed-call.js';
import { atStore } from './store-refusals.js';

/** What the plan of a query needs of the rules of its rows. */
interface PlannedRows {
  judgeWhere(access: ClassAccess, where: unknown): Where;
  composePredicate(
    access: ClassAccess,
    where: unknown,
    options: PredicateOptions,
  ): Promise<{ readonly where: Where }>;
}

type IndexAccess = Pick<GovernedCall, 'listIndexes' | 'operation'>;

/** All indexes, for checks that need every one. @throws Refused when the store does not report them */
export async function everyIndex(
  { schema }: ClassAccess,
  { listIndexes: indexesOf, operation }: IndexAccess,
): Promise<readonly IndexSchema[]> {
  return schema ? atStore(operation, () => indexesOf(schema)) : [];
}

/** Indexes over readable fields, for the caller. If the store does not report them, those of the schema. */
export async function readableIndexes(
  access: ClassAccess,
  { listIndexes: indexesOf }: Pick<IndexAccess, 'listIndexes'>,
): Promise<readonly IndexSchema[]> {
  return onlyReadable(await knownIndexes(access, indexesOf), access);
}

async function knownIndexes(
  { schema }: ClassAccess,
  indexesOf: IndexAccess['listIndexes'],
): Promise<readonly IndexSchema[]> {
  if (!schema) return [];
  return indexesOf(schema).catch((error: unknown) => {
    if (error instanceof StoreError) return schema.indexes;
    throw error;
  });
}

const onlyReadable = (indexes: readonly IndexSchema[], { readable }: ClassAccess): readonly IndexSchema[] =>
  indexes.filter(({ fields }) => fields.every((field) => readable?.has(takeRoot(field)) ?? true));

/** The plan of a query under every predicate of the class; `exposeExplain` decides how much of it is returned. */
export async function explain(
  call: GovernedCall,
  rules: PlannedRows,
  access: ClassAccess,
  callerWhere: unknown,
): Promise<QueryPlan> {
  const { agent, scope, read } = call;
  const refusal = planRefusal(agent);
  if (refusal) throw new Refused(refusal);
  const asked = rules.judgeWhere(access, callerWhere);
  const { where } = await rules.composePredicate(access, callerWhere, {
    canonical: true,
    operation: 'find',
  });
  const plan = await read({ kind: 'explain', className: access.className, where: withoutEmptyLists(where) });
  if (scope.policy.switches.exposeExplain) return toExposedPlan(plan, scope);
  const indexes = await knownIndexes(access, call.listIndexes);
  return explanation(plan, mayBeChosen(indexes, where) ? [] : onlyReadable(indexes, access), asked);
}

/**
 * A constraint whose plan does not say whether a subquery found nothing, as a relation to rows that the caller may not read
 * does: an empty list, which has a plan of its own, holds one value that no row has.
 */
function withoutEmptyLists(where: Where): Where {
  return fill(where) as Where;
}

function fill(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fill);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, isEmptyList(name, inner) ? [''] : fill(inner)]),
  );
}

const isEmptyList = (name: string, value: unknown): boolean =>
  (name === '$in' || name === '$nin') && Array.isArray(value) && value.length === 0;

/** Whether the database chooses among indexes: by all rows, also by those that the caller may not read, so none may be named then. */
export const mayBeChosen = (indexes: readonly IndexSchema[], where: Where): boolean =>
  beginWith(indexes, where).length > 1;

/** The indexes whose first field a constraint is about. */
function beginWith(indexes: readonly IndexSchema[], where: Where): readonly IndexSchema[] {
  const constrained = listConstrainedFields(where);
  return indexes.filter(({ fields }) => constrained.has(takeRoot(fields[0] ?? '')));
}

/** The whole plan, for deployments that enable `exposeExplain`; internal columns and withheld classes are removed. */
function toExposedPlan(plan: QueryPlan, scope: AgentScope): QueryPlan {
  return redact(plan, scope.withholding) as QueryPlan;
}

/** A plan made for a user or role reveals the rights in it, so agents that act as one receive none. */
export function planRefusal({ identity }: Agent): Refusal | null {
  if (identity.kind !== 'aclUser' && identity.kind !== 'aclRole') return null;
  return refusals.invalidArgument('explain_query is not available to agents that act as a user or role');
}

/**
 * The outline of a plan: its stages, and the names of indexes that begin with a field the caller constrained. Filters, bounds
 * and key patterns repeat the predicates of the operator, so only the members listed here are copied.
 * @param readable the indexes over fields that the caller may read
 * @param asked the caller's constraint in wire names
 */
export function explanation(plan: QueryPlan, readable: readonly IndexSchema[], asked: Where): QueryPlan {
  return outline(plan, new Set(beginWith(readable, asked).map(({ name }) => name)));
}

function outline(stage: Readonly<Record<string, unknown>>, indexes: ReadonlySet<string>): QueryPlan {
  const { stage: name, direction, indexName, inputStage } = stage;
  const several = branches(stage);
  return {
    stage: textOr(name, 'UNKNOWN'),
    ...(typeof direction === 'string' && { direction }),
    ...(typeof indexName === 'string' && indexes.has(indexName) && { indexName }),
    ...(isJsonObject(inputStage) && { inputStage: outline(inputStage, indexes) }),
    ...(several.length > 0 && { inputStages: several.map((inner) => outline(inner, indexes)) }),
  };
}

/** The stages that a stage merges: those of its branches, and the plans of shards. */
function branches(stage: QueryPlan): readonly QueryPlan[] {
  return [...toList(stage['inputStages']), ...toList(stage['shards']).map(findWinningPlan)];
}

/** The stages whose rows a stage reads. */
function behind(stage: QueryPlan): readonly QueryPlan[] {
  const { inputStage } = stage;
  return isJsonObject(inputStage) ? [inputStage, ...branches(stage)] : branches(stage);
}

/** The plan of one shard of a sharded cluster. */
function findWinningPlan(shard: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const plan = shard['winningPlan'];
  if (!isJsonObject(plan)) return {};
  return isJsonObject(plan['queryPlan']) ? plan['queryPlan'] : plan;
}

function toList(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === 'string' ? value : fallback;
}

/** Whether a stage, one behind it, or the plan of one shard reads a whole collection. */
function scansCollection(plan: QueryPlan): boolean {
  return plan['stage'] === 'COLLSCAN' || behind(plan).some(scansCollection);
}

/**
 * Refuses a query that would read the whole collection, before it runs. The plan is requested with the operator's authority,
 * limited only by the constraint. A failed explain does not refuse the query: the check limits cost, not access.
 */
export async function refuseCollectionScan(
  { scope, readAsOperator }: GovernedCall,
  { className, where, order = [] }: PlannedQuery,
): Promise<void> {
  const { switches } = scope.policy;
  // Rows that no constraint chooses are read along the index of their order; beside a constraint such an index is read whole.
  const orders = order.length > 0 && Object.keys(where).length === 0;
  let plan: QueryPlan;
  try {
    plan = await readAsOperator({
      kind: 'explain',
      className,
      where: withoutEmptyLists(where),
      ...(orders && { order }),
    });
  } catch {
    return;
  }
  if (!scansCollection(plan)) return;
  const reason = `COLLSCAN on ${className}`;
  throw new Refused({
    ...refusals.collectionScan(reason),
    body: {
      refused: true,
      reason,
      suggestion:
        'Filter on an indexed field (get_schema lists the indexes; explain_query shows the plan), or narrow the query.',
      ...(switches.exposeExplain && { winning_plan: toExposedPlan(plan, scope) }),
    },
  });
}

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
