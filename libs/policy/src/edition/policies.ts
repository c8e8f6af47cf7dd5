import type { Agent, AgentShape } from '#agent';
import type { Policy } from '../model/class-policy.js';

/**
 * The policy that is served, and for each agent the one it was admitted under: a call keeps its policy to its end, however
 * many came since. Policies themselves never change.
 */
export class Policies {
  private readonly ofShapes = new WeakMap<AgentShape, Policy>();
  private readonly ofAgents = new WeakMap<Agent, Policy>();
  private latest: Policy;

  /** @param shapes the agents that were configured together with it */
  constructor(first: Policy, shapes: Iterable<AgentShape> = []) {
    this.latest = first;
    this.adopt(first, shapes);
  }

  /** What agents are admitted under now. */
  get current(): Policy {
    return this.latest;
  }

  /** From now on agents are admitted under this one. @param shapes as for the first; none that an earlier one had */
  adopt(policy: Policy, shapes: Iterable<AgentShape>): void {
    for (const shape of shapes) this.ofShapes.set(shape, policy);
    this.latest = policy;
  }

  /** Sub-agents are under the policy of the agent at their root. One whose shape no configuration made keeps what it meets first. */
  of(agent: Agent): Policy {
    const root = rootOf(agent);
    const known = this.ofShapes.get(root.shape) ?? this.ofAgents.get(root);
    if (known) return known;
    this.ofAgents.set(root, this.latest);
    return this.latest;
  }
}

function rootOf(agent: Agent): Agent {
  let root = agent;
  while (root.parent) root = root.parent;
  return root;
}
