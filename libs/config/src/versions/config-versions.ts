import { isDeepStrictEqual } from 'node:util';
import { type Observable, Subject } from 'rxjs';
import {
  Agent,
  type AgentDefinition,
  CurrentAgents,
  findRootAgent,
  type RateLimiters,
  toAgentOptions,
  toDigest,
  withCode,
  withRateLimiters,
  withScopeTenants,
} from '#core';
import { Policies, TenantsByPolicy } from '#policy';
import type { ConfigIssue } from '../config-error.js';
import type { LoadedConfig } from '../load-config.js';

/** The configuration as it was read once: a call is admitted under one version and keeps it to its end. Never changes. */
export interface ConfigVersion extends LoadedConfig {
  /** 1 for the version of the start, one more for each that followed in this process. */
  readonly number: number;
  readonly loadedAt: Date;
}

/** A version that is not served, and why. */
export interface RefusedVersion {
  readonly at: Date;
  readonly issues: readonly ConfigIssue[];
}

/** One version in the place of another. */
export interface VersionChange {
  readonly before: ConfigVersion;
  readonly now: ConfigVersion;
}

/**
 * The agents whose streams a new version of the configuration ends: those whose declaration, or the rules of
 * authentication, changed. Their clients reconnect and are authenticated again. A change of the policy ends no stream,
 * because rights are checked at each request.
 */
export function mustReturn({ before, now }: VersionChange): (agent: Agent) => boolean {
  if (!isDeepStrictEqual(before.config.auth, now.config.auth)) return () => true;
  const changed = new Set(
    Object.keys(before.config.agents).filter(
      (name) => !isDeepStrictEqual(before.config.agents[name], now.config.agents[name]),
    ),
  );
  return ({ definition }) => changed.has(definition.name);
}

/**
 * Which version of the configuration is served. Each replica reads its own file: for a while they may serve different ones.
 */
export class ConfigVersions extends CurrentAgents {
  /** Of each agent, under whichever version it was admitted. */
  readonly policies: Policies;
  private readonly tenants = new TenantsByPolicy({ of: (agent) => this.policies.of(agent) });
  private readonly configured = new WeakMap<AgentDefinition, ConfigVersion>();
  private readonly changing = new Subject<VersionChange>();
  private latest: ConfigVersion;
  private lastRefused: RefusedVersion | null = null;

  /** Emits once new calls are admitted under the new version. */
  readonly changes: Observable<VersionChange> = this.changing.asObservable();

  /** @param limiters count the calls of named agents, of all replicas together */
  constructor(
    first: LoadedConfig,
    private readonly limiters: RateLimiters,
  ) {
    super();
    this.latest = this.createVersion(first, 1);
    this.policies = new Policies(first.policy, this.latest.agents.values());
  }

  get current(): ConfigVersion {
    return this.latest;
  }

  /** The last version that could not be served; null once a later one is. */
  get refused(): RefusedVersion | null {
    return this.lastRefused;
  }

  /** @param loaded complete and without issues */
  adopt(loaded: LoadedConfig): ConfigVersion {
    const before = this.latest;
    const now = this.createVersion(loaded, before.number + 1);
    this.policies.adopt(now.policy, now.agents.values());
    this.latest = now;
    this.lastRefused = null;
    this.changing.next({ before, now });
    return now;
  }

  /** What is served stays as it is. */
  refuse(issues: readonly ConfigIssue[]): void {
    this.lastRefused = Object.freeze({ at: new Date(), issues });
  }

  /** What the file says again is what is served. */
  confirm(): void {
    this.lastRefused = null;
  }

  findDefinition(name: string): AgentDefinition | undefined {
    return this.latest.agents.get(name);
  }

  /** The definition of an agent outside the configuration, under the served policy. */
  withinPolicy(definition: AgentDefinition): AgentDefinition {
    return withScopeTenants(definition, this.tenants);
  }

  knows(definition: AgentDefinition): boolean {
    return this.configured.has(definition);
  }

  /**
   * The agent as it would be admitted now, for what outlives a call; null when it would not. Its identity and tenant are
   * those of its admission: where another version declares them, the caller has to come back (see `mustReturn`).
   */
  asNow(agent: Agent): Agent | null {
    const { name } = agent.definition;
    if (agent.parent || !this.knows(agent.definition) || this.findDefinition(name) === agent.definition)
      return agent;
    const definition = this.findDefinition(name);
    if (!definition) return null;
    return new Agent({ ...toAgentOptions(agent), definition });
  }

  isCurrent(agent: Agent): boolean {
    const { latest: now, policies } = this;
    const root = findRootAgent(agent);
    const before = this.configured.get(root.definition);
    if (before === now) return true;
    if (policies.of(agent).version !== now.policy.version) return false;
    return !before || !mustReturn({ before, now })(root);
  }

  digestRights(agent: Agent): string {
    const { definition } = findRootAgent(agent);
    const { permissions, tools, methods, classes, filters, tenantId } = definition;
    const { allowMutations, writes, clientMode, masterAtlas } = definition;
    const names = [tools, methods, classes, filters];
    const rights = [permissions, tenantId, allowMutations, writes, clientMode, masterAtlas, names];
    return toDigest(JSON.stringify([this.policies.of(agent).version, rights], withCode));
  }

  private createVersion(loaded: LoadedConfig, number: number): ConfigVersion {
    const agents = new Map(
      [...loaded.agents].map(
        ([name, definition]) =>
          [name, withScopeTenants(withRateLimiters(definition, this.limiters), this.tenants)] as const,
      ),
    );
    const { config, policy, identities } = loaded;
    const version = Object.freeze({ config, policy, identities, agents, number, loadedAt: new Date() });
    for (const definition of agents.values()) this.configured.set(definition, version);
    return version;
  }
}
