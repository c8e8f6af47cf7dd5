import type { Observable } from 'rxjs';
import type { Agent } from './agent.js';
import type { AgentShape } from './agent-definition.js';

/** The named agents of the current configuration, which may be reloaded while the process runs. */
export abstract class CurrentAgents {
  /** Emits after each new version of the configuration: agents are admitted under it from then on. */
  abstract readonly changes: Observable<unknown>;
  /** @returns `undefined` when no such agent is configured now */
  abstract shapeOf(name: string): AgentShape | undefined;
  /** Whether this version of the configuration, or an earlier one, created the definition. */
  abstract knows(shape: AgentShape): boolean;
  /** The agent as it would be admitted now, for work that outlives a call; null when it would not. */
  abstract asNow(agent: Agent): Agent | null;
}
