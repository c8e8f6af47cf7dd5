import { createHash, randomUUID } from 'node:crypto';
import type { Observable } from 'rxjs';
import type { AgentDefinition, ScopeTenant } from './agent-definition.js';
import { type Identity, MASTER, type Tier } from './identity.js';

export interface AgentOptions {
  /** Its definition in the configuration: name, permission level, filters and limits. */
  readonly definition: AgentDefinition;
  /** The identity whose rights its reads have. */
  readonly identity?: Identity;
  /** The caller's name, stable over requests: the key of limits, budgets and session ownership. */
  readonly principal: string;
  /** The only tenant whose rows it can see; null: it is bound to none. */
  readonly tenantId?: string | number | null;
  /** Claims of the token that admitted the caller. Default: those of its parent, else none. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** The id of the caller in the data, as the application that admitted it names it. Default: that of its parent, else none. */
  readonly user?: string | null;
  /** The user behind the session in `identity`, when the operator's configuration chose that user and not the caller. */
  readonly impersonatedUserId?: string;
  /** Default: that of the definition. */
  readonly impersonationLabel?: string | null;
  /** The correlation id of the records of its calls, chosen by the application. Default: that of the request. */
  readonly correlationId?: string | null;
  /** The name of the `auth` rule that admitted the caller. Default: that of its parent, else none. */
  readonly keyName?: string | null;
  /** The agent that made it, whose definition `definition` narrows (see `deriveAgent`). */
  readonly parent?: Agent;
}

const NO_CLAIMS: Readonly<Record<string, unknown>> = Object.freeze({});

/**
 * The immutable identity and limits a call runs under. One per request; definitions are compiled once and shared.
 * Every later step may only narrow what it permits.
 */
export class Agent {
  /** Unique to this agent; identifies it in logs and audit records. */
  readonly agentId: string = randomUUID();
  /** 0 for the agent of a request, one more for each sub-agent below it. */
  readonly depth: number;
  /** The agent that made it; null: it is no sub-agent. */
  readonly parent: Agent | null;
  /** Its definition in the configuration: name, permission level, filters and limits. */
  readonly definition: AgentDefinition;
  /** Its permission level. */
  readonly permissions: Tier;
  /** The identity whose rights its reads have. */
  readonly identity: Identity;
  /** Whether it reads with the master key: no session token, no ACL user or role, not client mode. */
  readonly usesMasterKey: boolean;
  /** The caller's name in limits and audit records. */
  readonly principal: string;
  /** The only tenant whose rows it can see; null: it is bound to none. */
  readonly tenantId: string | number | null;
  /** The claims of the caller's access token, or those that the application passed. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** The id of the caller in the data, as the application names it; null: no application admitted it. */
  readonly user: string | null;
  /** Set as soon as a session of that user was found or created. */
  readonly impersonatedUserId: string | null;
  /** The reason for acting as another user, for audit records; null: none was given. */
  readonly impersonationLabel: string | null;

  /** Replaces the `Mcp-Session-Id` as the correlation id of its records; null: the application chose none. */
  readonly correlationId: string | null;
  /** The name of the `auth` rule that admitted the caller; null: it has none, or an application admitted the caller. */
  readonly keyName: string | null;

  /** @internal Made by `Parley.agentFor` and `SubAgents`. @throws TypeError when a sub-agent's definition was not narrowed from its parent's */
  constructor(options: AgentOptions) {
    this.definition = options.definition;
    this.parent = options.parent ?? null;
    if (this.definition.outer !== (this.parent?.definition ?? null))
      throw new TypeError('the definition of a sub-agent is narrowed from that of its parent');
    this.depth = this.parent ? this.parent.depth + 1 : 0;
    this.permissions = this.definition.permissions;
    this.identity = options.identity ?? MASTER;
    this.usesMasterKey = this.identity.kind === 'master' && !this.definition.clientMode;
    this.principal = options.principal;
    this.tenantId = options.tenantId ?? options.definition.tenantId;
    this.user = options.user ?? this.parent?.user ?? null;
    this.claims = options.claims ?? this.parent?.claims ?? NO_CLAIMS;
    const inherits = this.parent !== null && this.parent.identity === this.identity;
    this.impersonatedUserId =
      options.impersonatedUserId ?? (inherits ? (this.parent?.impersonatedUserId ?? null) : null);
    this.impersonationLabel =
      options.impersonationLabel ??
      this.definition.impersonationLabel ??
      this.parent?.impersonationLabel ??
      null;
    this.correlationId = options.correlationId ?? this.parent?.correlationId ?? null;
    this.keyName = options.keyName ?? this.parent?.keyName ?? null;
    Object.freeze(this);
  }
}

/** The options of this agent, to make one that differs in some of them. */
export function toAgentOptions(agent: Agent): AgentOptions {
  const { definition, identity, principal, tenantId, claims, user, correlationId, keyName, parent } = agent;
  const { impersonatedUserId, impersonationLabel } = agent;
  return {
    definition,
    identity,
    principal,
    tenantId,
    claims,
    user,
    correlationId,
    keyName,
    impersonationLabel,
    ...(impersonatedUserId !== null && { impersonatedUserId }),
    ...(parent && { parent }),
  };
}

/**
 * Whom something belongs to that is kept for a caller: tasks, exports, approvals, keys of writes, streams. Two tokens
 * of one person with different tenants, agents or rights are two owners: what is kept for one does not exist for the other.
 */
export interface Owner {
  readonly principal: string;
  readonly tenant: string | number | null;
  /** The name of the agent's definition. */
  readonly agent: string;
  /** Its tenants by scopes of classes that do not go by its `tenantId`. Absent: it has none. */
  readonly tenants?: readonly ScopeTenant[];
  /** The user, role or session whose rights it reads with, and its values that filters and scopes decide by. Absent: it has none. */
  readonly rights?: readonly string[];
}

/** The owner of what is kept for this agent's caller. */
export function toOwner(agent: Agent): Owner {
  const { principal, tenantId, definition } = agent;
  const tenants = definition.tenants?.list(agent) ?? [];
  const rights = [...nameUser(agent), ...(definition.tenants?.listFiltered(agent) ?? [])];
  return {
    principal,
    tenant: tenantId,
    agent: definition.name,
    ...(tenants.length > 0 && { tenants }),
    ...(rights.length > 0 && { rights }),
  };
}

/** The user of a session that an `auth` rule took from the caller is the principal; any other session is named by its digest. */
function nameUser(agent: Agent): readonly string[] {
  const { identity, impersonatedUserId } = agent;
  if (identity.kind === 'aclRole') return [`role:${identity.role}`];
  const user = identity.kind === 'aclUser' ? identity.userId : impersonatedUserId;
  if (user !== null) return [`user:${user}`];
  const root = findRootAgent(agent);
  const isPrincipal = root.user === null && root.identity === identity;
  return identity.kind === 'sessionToken' && !isPrincipal ? [`session:${toDigest(identity.token)}`] : [];
}

/** For `JSON.stringify`, what it does not write by itself: sets, maps, patterns, and the source text of functions. */
export function withCode(_name: string, value: unknown): unknown {
  if (value instanceof Map || value instanceof Set) return [...(value as Iterable<unknown>)];
  if (value instanceof RegExp) return String(value);
  return typeof value === 'function' ? `function ${String(value)}` : value;
}

/** Tells values of callers apart and does not contain them. */
export function toDigest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** An owner as one text. */
export function toOwnerKey({ principal, tenant, agent, tenants, rights }: Owner): string {
  return JSON.stringify([
    principal,
    tenant,
    agent,
    ...(tenants ? [tenants] : []),
    ...(rights ? [{ rights }] : []),
  ]);
}

/** The owner as one text. */
export function callerKey(agent: Agent): string {
  return toOwnerKey(toOwner(agent));
}

/** Whether both are the same owner. */
export function isSameOwner(one: Owner, other: Owner): boolean {
  return toOwnerKey(one) === toOwnerKey(other);
}

/** Whether an agent may learn of what an owner does with these classes: nobody of another tenant may. @param classNames empty: it is not known which */
export function sharesTenant(
  viewer: Agent,
  owner: Pick<Owner, 'tenant' | 'tenants'>,
  classNames: readonly string[],
): boolean {
  if (owner.tenant !== viewer.tenantId) return false;
  const { tenants } = viewer.definition;
  return tenants ? tenants.shares(viewer, owner, classNames) : owner.tenants === undefined;
}

/** The tenant that an agent belongs to, whichever scopes bind it to it: several are one text. Null: none. */
export function findTenant(agent: Agent): string | number | null {
  const bound = (agent.definition.tenants?.list(agent) ?? []).map(([, tenant]) => tenant);
  const all = [...new Set([...(agent.tenantId === null ? [] : [agent.tenantId]), ...bound])];
  return all.length > 1 ? JSON.stringify(all) : (all[0] ?? null);
}

/** The agent of the request, whose policy, budgets and turns its sub-agents share, whatever their names. */
export function findRootAgent(agent: Agent): Agent {
  let root = agent;
  while (root.parent) root = root.parent;
  return root;
}

/** The named agents of the current configuration, which may be reloaded while the process runs. */
export abstract class CurrentAgents {
  /** Emits after each new version of the configuration: agents are admitted under it from then on. */
  abstract readonly changes: Observable<unknown>;
  /** @returns `undefined` when no such agent is configured now */
  abstract findDefinition(name: string): AgentDefinition | undefined;
  /** Whether this version of the configuration, or an earlier one, created the definition. */
  abstract knows(definition: AgentDefinition): boolean;
  /** The agent as it would be admitted now, for work that outlives a call; null when it would not. */
  abstract asNow(agent: Agent): Agent | null;
  /**
   * Whether what admitted the agent is what is configured now: its policy, its definition and the rules of authentication. What waited
   * for a person acts only then.
   */
  abstract isCurrent(agent: Agent): boolean;
  /**
   * A digest of the policy and the rights that the agent was admitted with. All replicas that serve the same compute the same: what
   * was kept for an agent under other ones is not shown to it.
   */
  abstract digestRights(agent: Agent): string;
}
