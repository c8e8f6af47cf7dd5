import { randomUUID } from 'node:crypto';
import type { AgentShape } from './agent-shape.js';
import { type Identity, MASTER } from './identity.js';

export interface AgentOptions {
  readonly shape: AgentShape;
  readonly identity?: Identity;
  /** Who is calling, stable over requests: the key of limits, budgets and session ownership. */
  readonly principal: string;
  readonly tenantId?: string | number | null;
  /** Whose session `identity` is, when an operator's order chose it and not the caller. */
  readonly impersonatedUserId?: string;
  /** Default: the shape's. */
  readonly impersonationLabel?: string | null;
  /** The agent that made it, whose shape `shape` narrows (see `deriveAgent`). */
  readonly parent?: Agent;
}

/**
 * The immutable identity and limits a call runs under. One per request; shapes are compiled once and shared.
 * Everything on it may only ever narrow on the way down to data.
 */
export class Agent {
  readonly agentId = randomUUID();
  /** 0 for the agent of a request, one more for each sub-agent below it. */
  readonly depth: number;
  readonly parent: Agent | null;
  readonly shape: AgentShape;
  readonly identity: Identity;
  readonly principal: string;
  readonly tenantId: string | number | null;
  /** Set once a session of that user was found or made, and not before. */
  readonly impersonatedUserId: string | null;
  readonly impersonationLabel: string | null;

  /** @throws TypeError when a sub-agent's shape was not narrowed from its parent's */
  constructor(options: AgentOptions) {
    this.shape = options.shape;
    this.parent = options.parent ?? null;
    if (this.shape.outer !== (this.parent?.shape ?? null))
      throw new TypeError('the shape of a sub-agent is narrowed from that of its parent');
    this.depth = this.parent ? this.parent.depth + 1 : 0;
    this.identity = options.identity ?? MASTER;
    this.principal = options.principal;
    this.tenantId = options.tenantId ?? options.shape.tenantId;
    const inherits = this.parent !== null && this.parent.identity === this.identity;
    this.impersonatedUserId =
      options.impersonatedUserId ?? (inherits ? (this.parent?.impersonatedUserId ?? null) : null);
    this.impersonationLabel =
      options.impersonationLabel ?? this.shape.impersonationLabel ?? this.parent?.impersonationLabel ?? null;
    Object.freeze(this);
  }

  get permissions() {
    return this.shape.permissions;
  }

  /** True master posture: no session token, no ACL user or role, not client mode. */
  get usesMasterKey(): boolean {
    return this.identity.kind === 'master' && !this.shape.clientMode;
  }
}
