import type { Refusal } from '../refusal.js';
import type { Widening } from '../widening.js';
import { accessDenied } from './general.js';

/** The store's own permissions refused what the policy left. */
export function storeDenied(store: string): Refusal {
  return accessDenied('store', `${store} does not permit this to the caller`, 'clp_denied');
}

/** What is asked has no way to the data in this deployment. */
export function noRoute(reason: string): Refusal {
  return accessDenied('route', reason);
}

/** The agent acts for somebody who cannot be found. */
export function identityUnresolved(cause: string): Refusal {
  return { ...accessDenied('identity', 'The identity of this agent cannot be resolved'), cause };
}

/** Counts only: who they are is for the operator's event. */
export function subAgentWidens({ reason, parent, child, extra }: Widening): Refusal {
  const wanted =
    reason === 'child_master_key'
      ? 'the master key'
      : `${child.length} principals, ${extra.length} of them new`;
  return accessDenied(
    'identity',
    `A sub-agent may not act with more rights than its parent: the parent has ${parent.length} principals, it asks for ${wanted}`,
  );
}

/** A filter of the agent that is a function did not give a constraint: no rows rather than all. */
export function agentFilterFailed(className: string, cause: string): Refusal {
  return {
    ...accessDenied('agent_filter', `The row filter of this agent for '${className}' could not be evaluated`),
    cause,
  };
}

/** The rows of a joined class could not be limited to what the agent may see. */
export function tenantJoinDenied(className: string): Refusal {
  return accessDenied(
    'joins',
    `Pipeline target '${className}' cannot be joined: its row limits cannot be carried into the join`,
    'tenant_join_denied',
  );
}

/** A right on rows that cannot be carried into what would run. */
export function unenforceableScope(message: string): Refusal {
  return accessDenied('scope', message, 'unenforceable_scope');
}
