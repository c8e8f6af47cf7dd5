import { randomUUID } from 'node:crypto';
import type { AgentShape } from './agent-definition.js';
import { type Identity, MASTER } from './identity.js';

export interface AgentOptions {
  /** Its definition in the configuration: name, permission level, filters and limits. */
  readonly shape: AgentShape;
  /** The identity whose rights its reads have. */
  readonly identity?: Identity;
  /** The caller's name, stable over requests: the key of limits, budgets and session ownership. */
  readonly principal: string;
  /** The only tenant whose rows it can see; null: it is bound to none. */
  readonly tenantId?: string | number | null;
  /** Claims of the token that admitted the caller. Default: those of its parent, else none. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** The user behind the session in `identity`, when the operator's configuration chose that user and not the caller. */
  readonly impersonatedUserId?: string;
  /** Default: that of the definition. */
  readonly impersonationLabel?: string | null;
  /** The correlation id of the records of its calls, chosen by the application. Default: that of the request. */
  readonly correlationId?: string | null;
  /** The agent that made it, whose definition `shape` narrows (see `deriveAgent`). */
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
  readonly shape: AgentShape;
  /** The identity whose rights its reads have. */
  readonly identity: Identity;
  /** The caller's name in limits and audit records. */
  readonly principal: string;
  /** The only tenant whose rows it can see; null: it is bound to none. */
  readonly tenantId: string | number | null;
  /** The claims of the caller's access token, or those that the application passed. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Set as soon as a session of that user was found or created. */
  readonly impersonatedUserId: string | null;
  /** The reason for acting as another user, for audit records; null: none was given. */
  readonly impersonationLabel: string | null;

  /** Replaces the `Mcp-Session-Id` as the correlation id of its records; null: the application chose none. */
  readonly correlationId: string | null;

  /** @internal Made by `Parley.agentFor` and `SubAgents`. @throws TypeError when a sub-agent's definition was not narrowed from its parent's */
  constructor(options: AgentOptions) {
    this.shape = options.shape;
    this.parent = options.parent ?? null;
    if (this.shape.outer !== (this.parent?.shape ?? null))
      throw new TypeError('the shape of a sub-agent is narrowed from that of its parent');
    this.depth = this.parent ? this.parent.depth + 1 : 0;
    this.identity = options.identity ?? MASTER;
    this.principal = options.principal;
    this.tenantId = options.tenantId ?? options.shape.tenantId;
    this.claims = options.claims ?? this.parent?.claims ?? NO_CLAIMS;
    const inherits = this.parent !== null && this.parent.identity === this.identity;
    this.impersonatedUserId =
      options.impersonatedUserId ?? (inherits ? (this.parent?.impersonatedUserId ?? null) : null);
    this.impersonationLabel =
      options.impersonationLabel ?? this.shape.impersonationLabel ?? this.parent?.impersonationLabel ?? null;
    this.correlationId = options.correlationId ?? this.parent?.correlationId ?? null;
    Object.freeze(this);
  }

  /** Its permission level. */
  get permissions() {
    return this.shape.permissions;
  }

  /** Whether it reads with the master key: no session token, no ACL user or role, not client mode. */
  get usesMasterKey(): boolean {
    return this.identity.kind === 'master' && !this.shape.clientMode;
  }
}

/**
 * A key of the admitted caller: its principal, tenant and agent. Two tokens of one person with different tenants or agents
 * give two keys: one must not receive what is sent to the other, nor answer for it.
 */
export function callerKey({ principal, tenantId, shape }: Agent): string {
  return JSON.stringify([principal, tenantId, shape.name]);
}
