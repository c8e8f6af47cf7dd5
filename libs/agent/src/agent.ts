import { randomUUID } from 'node:crypto';
import type { AgentShape } from './agent-shape.js';
import { type Identity, MASTER } from './identity.js';

export interface AgentOptions {
  readonly shape: AgentShape;
  readonly identity?: Identity;
  /** Who is calling, stable over requests: the key of limits, budgets and session ownership. */
  readonly principal: string;
  readonly tenantId?: string | number | null;
}

/**
 * The immutable identity and limits a call runs under. One per request; shapes are compiled once and shared.
 * Everything on it may only ever narrow on the way down to data.
 */
export class Agent {
  readonly agentId = randomUUID();
  readonly depth = 0;
  readonly shape: AgentShape;
  readonly identity: Identity;
  readonly principal: string;
  readonly tenantId: string | number | null;

  constructor(options: AgentOptions) {
    this.shape = options.shape;
    this.identity = options.identity ?? MASTER;
    this.principal = options.principal;
    this.tenantId = options.tenantId ?? options.shape.tenantId;
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
