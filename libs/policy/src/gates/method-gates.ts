import { type Agent, type Refusal, refusals, tierCovers, type Tier } from '#agent';
import type { EnvironmentGates } from './tool-gates.js';

/** What the method gates need to know of a declared method. */
export interface GatedMethod {
  /** Canonical. */
  readonly className: string;
  readonly name: string;
  readonly permission: Tier;
}

/** May this agent call this declared method at all: tier, the agent's method filter, environment, in that order. */
export function methodGate(agent: Agent, method: GatedMethod, gates: EnvironmentGates): Refusal | null {
  const { className, name, permission } = method;
  const qualified = `${className}.${name}`;
  if (!tierCovers(agent.permissions, permission))
    return refusals.tierTooLow(qualified, permission, agent.permissions);
  // An entry may leave out the class, or the underscore of a system class; any match counts, for `except` too.
  const spellings = [name, qualified, ...(className.startsWith('_') ? [qualified.slice(1)] : [])];
  if (!agent.shape.methods.permitsAny(spellings)) return refusals.methodFiltered(qualified);
  if (permission === 'write' && !gates.PARSE_AGENT_ALLOW_WRITE_TOOLS)
    return refusals.methodEnvClosed('Write', qualified, 'PARSE_AGENT_ALLOW_WRITE_TOOLS');
  if (permission === 'admin' && !gates.PARSE_AGENT_ALLOW_SCHEMA_OPS)
    return refusals.methodEnvClosed('Admin', qualified, 'PARSE_AGENT_ALLOW_SCHEMA_OPS');
  return null;
}
