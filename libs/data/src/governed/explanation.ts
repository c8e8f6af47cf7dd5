import { type Agent, type Refusal, Refused, refusals } from '#agent';
import { type AgentScope, type ClassAccess, type IndexSchema, redact, rootOf, type Where } from '#policy';
import type { QueryPlan } from '../record-store.js';
import type { CallerConstraints } from './caller-constraints.js';
import { toldIndexes } from './class-indexes.js';
import type { RecordsParts } from './row-rules.js';
import { atStore } from './store-faults.js';

/** The plan of a query under every predicate of the class; how much of it is told is `exposeExplain`'s to say. */
export async function explain(
  parts: RecordsParts,
  constraints: CallerConstraints,
  access: ClassAccess,
  callerWhere: unknown,
): Promise<QueryPlan> {
  const { agent, scope, reader, operation } = parts;
  const refusal = planRefusal(agent);
  if (refusal) throw new Refused(refusal);
  const asked = constraints.judged(access, callerWhere);
  const { where } = await constraints.composed(access, callerWhere, { canonical: true, operation: 'find' });
  const plan = await atStore(operation, () =>
    reader.explain({ className: access.className, where }, operation),
  );
  if (scope.policy.switches.exposeExplain) return exposedPlan(plan, scope);
  return explanation(plan, await toldIndexes(access, parts), asked);
}

/** The whole plan, for operators who chose to show it; internal columns and withheld classes stay out of it. */
export function exposedPlan(plan: QueryPlan, scope: AgentScope): QueryPlan {
  return redact(plan, (className) => scope.isWithheld(className)) as QueryPlan;
}

/** A plan made for a user or role shows whose rights it carries, so agents that act as one get none. */
function planRefusal({ identity }: Agent): Refusal | null {
  if (identity.kind !== 'aclUser' && identity.kind !== 'aclRole') return null;
  return refusals.invalidArgument('explain_query is not available to agents that act as a user or role');
}

/**
 * The shape of a plan: its stages, and the names of indexes that begin with a field the caller constrained. Filters, bounds
 * and key patterns repeat the predicates of the operator, so only what is listed here is taken over.
 * @param told the indexes over fields that the caller may read
 * @param asked the caller's constraint in wire names
 */
export function explanation(plan: QueryPlan, told: readonly IndexSchema[], asked: Where): QueryPlan {
  const constrained = fieldsOf(asked);
  const explained = told.filter(({ fields }) => constrained.has(rootOf(fields[0] ?? '')));
  return outline(plan, new Set(explained.map(({ name }) => name)));
}

function outline(stage: Readonly<Record<string, unknown>>, indexes: ReadonlySet<string>): QueryPlan {
  const { stage: name, direction, indexName, inputStage } = stage;
  const several = [...listOf(stage['inputStages']), ...listOf(stage['shards']).map(winningPlan)];
  return {
    stage: textOr(name, 'UNKNOWN'),
    ...(typeof direction === 'string' && { direction }),
    ...(typeof indexName === 'string' && indexes.has(indexName) && { indexName }),
    ...(isObject(inputStage) && { inputStage: outline(inputStage, indexes) }),
    ...(several.length > 0 && { inputStages: several.map((inner) => outline(inner, indexes)) }),
  };
}

function fieldsOf(where: Where): Set<string> {
  const fields = new Set<string>();
  for (const [key, value] of Object.entries(where)) {
    if (!key.startsWith('$')) fields.add(rootOf(key));
    else for (const branch of listOf(value)) for (const field of fieldsOf(branch)) fields.add(field);
  }
  return fields;
}

/** What one shard of a sharded cluster does. */
function winningPlan(shard: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const plan = shard['winningPlan'];
  if (!isObject(plan)) return {};
  return isObject(plan['queryPlan']) ? plan['queryPlan'] : plan;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === 'string' ? value : fallback;
}
