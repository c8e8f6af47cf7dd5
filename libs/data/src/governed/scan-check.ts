import { Refused, refusals } from '#agent';
import type { Where } from '#policy';
import type { QueryPlan } from '../record-store.js';
import { exposedPlan } from './explanation.js';
import type { RecordsParts } from './row-rules.js';

/** The plan of a query, walked through `inputStage` and `inputStages`. */
function scansCollection(plan: unknown): boolean {
  if (plan === null || typeof plan !== 'object') return false;
  const { stage, inputStage, inputStages } = plan as {
    stage?: unknown;
    inputStage?: unknown;
    inputStages?: unknown;
  };
  if (stage === 'COLLSCAN') return true;
  return scansCollection(inputStage) || (Array.isArray(inputStages) && inputStages.some(scansCollection));
}

/**
 * With `refuseCollscan` on, a query that would read the whole collection is refused before it runs.
 * The plan is the operator's affair: it is asked for with nobody's rights but those in the constraint.
 * An explain that fails lets the query through: it decides about cost, not about access.
 */
export async function refuseCollectionScan(
  { scope, operatorReader, operation }: RecordsParts,
  className: string,
  where: Where,
): Promise<void> {
  const { switches } = scope.policy;
  if (
    !switches.refuseCollscan ||
    scope.classPolicy(className).allowCollscan ||
    Object.keys(where).length === 0
  )
    return;
  let plan: QueryPlan;
  try {
    plan = await operatorReader.explain({ className, where }, operation);
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
      ...(switches.exposeExplain && { winning_plan: exposedPlan(plan, scope) }),
    },
  });
}
