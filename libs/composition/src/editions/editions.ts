import { type Observable, Subject } from 'rxjs';
import { Agent, type AgentShape } from '#agent';
import type { SharedState } from '#cluster';
import { Policies } from '#policy';
import type { ConfigFault, LoadedConfig } from '#config';
import { countedTogether } from '../shared-state.js';

/** One reading of the configuration, whole: calls are admitted under one and keep it to their end. Never changes. */
export interface Edition extends LoadedConfig {
  /** 1 for that of the start, one more for each that followed in this process. */
  readonly number: number;
  readonly loadedAt: Date;
}

/** A reading that is not served, and why. */
export interface RefusedEdition {
  readonly at: Date;
  readonly faults: readonly ConfigFault[];
}

/** What took the place of what. */
export interface Succession {
  readonly before: Edition;
  readonly now: Edition;
}

/**
 * Which edition of the configuration is served. Each replica reads its own file: for a while they may serve different ones.
 */
export class Editions {
  /** Of each agent, under whichever edition it was admitted. */
  readonly policies: Policies;
  private readonly configured = new WeakSet<AgentShape>();
  private readonly succeeding = new Subject<Succession>();
  private latest: Edition;
  private lastRefused: RefusedEdition | null = null;

  /** Emits once new calls are admitted under the new edition. */
  readonly successions: Observable<Succession> = this.succeeding.asObservable();

  constructor(
    first: LoadedConfig,
    private readonly shared: SharedState,
  ) {
    this.latest = this.editionOf(first, 1);
    this.policies = new Policies(first.policy, this.latest.agents.values());
  }

  get current(): Edition {
    return this.latest;
  }

  /** The last reading that could not be served; null once a later one is. */
  get refused(): RefusedEdition | null {
    return this.lastRefused;
  }

  /** @param loaded complete and without faults */
  adopt(loaded: LoadedConfig): Edition {
    const before = this.latest;
    const now = this.editionOf(loaded, before.number + 1);
    this.policies.adopt(now.policy, now.agents.values());
    this.latest = now;
    this.lastRefused = null;
    this.succeeding.next({ before, now });
    return now;
  }

  /** What is served stays as it is. */
  refuse(faults: readonly ConfigFault[]): void {
    this.lastRefused = Object.freeze({ at: new Date(), faults });
  }

  /** What the file says again is what is served. */
  confirm(): void {
    this.lastRefused = null;
  }

  shapeOf(name: string): AgentShape | undefined {
    return this.latest.agents.get(name);
  }

  /** Whether an edition, this or an earlier one, made the shape. */
  knows(shape: AgentShape): boolean {
    return this.configured.has(shape);
  }

  /**
   * The agent as it would be admitted now, for what outlives a call; null when it would not. Its identity and tenant are
   * those of its admission: where they are declared anew, whoever it is has to come back (see `mustReturn`).
   */
  asNow(agent: Agent): Agent | null {
    const { name } = agent.shape;
    if (agent.parent || !this.knows(agent.shape) || this.shapeOf(name) === agent.shape) return agent;
    const shape = this.shapeOf(name);
    if (!shape) return null;
    const { identity, principal, tenantId, claims, correlationId } = agent;
    const { impersonatedUserId, impersonationLabel } = agent;
    return new Agent({
      shape,
      identity,
      principal,
      tenantId,
      claims,
      correlationId,
      ...(impersonatedUserId !== null && { impersonatedUserId }),
      impersonationLabel,
    });
  }

  private editionOf(loaded: LoadedConfig, number: number): Edition {
    const agents = countedTogether(loaded.agents, this.shared);
    for (const shape of agents.values()) this.configured.add(shape);
    const { config, policy, identities } = loaded;
    return Object.freeze({ config, policy, identities, agents, number, loadedAt: new Date() });
  }
}
