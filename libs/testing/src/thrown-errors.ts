import { type Agent, type Parley, ToolCallbacks } from '@parley/server';

/** What was thrown by calls, which the agent is not told: a test wants to know. Each call has an agent of its own. */
export class ThrownErrors {
  private readonly byAgent = new WeakMap<Agent, unknown>();

  constructor(parley: Pick<Parley, 'get'>) {
    parley.get(ToolCallbacks).onError((error, { agent }) => this.byAgent.set(agent, error));
  }

  /** Undefined: nothing. */
  take(agent: Agent): unknown {
    const error = this.byAgent.get(agent);
    this.byAgent.delete(agent);
    return error;
  }
}
