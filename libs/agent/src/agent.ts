import { randomUUID } from 'node:crypto';
import type { AgentShape } from './agent-shape.js';
import { type Identity, MASTER } from './identity.js';

export interface AgentOptions {
  /** What the configuration says of it: name, tier, filters and limits. */
  readonly shape: AgentShape;
  /** Whose rights its reads have. */
  readonly identity?: Identity;
  /** Who is calling, stable over requests: the key of limits, budgets and session ownership. */
  readonly principal: string;
  /** The only tenant whose rows exist for it; null: it is bound to none. */
  readonly tenantId?: string | number | null;
  /** Claims of the token that admitted the caller. Default: those of its parent, else none. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Whose session `identity` is, when an operator's order chose it and not the caller. */
  readonly impersonatedUserId?: string;
  /** Default: the shape's. */
  readonly impersonationLabel?: string | null;
  /** What threads the records of its calls, chosen by the application. Default: that of the request. */
  readonly correlationId?: string | null;
  /** The agent that made it, whose shape `shape` narrows (see `deriveAgent`). */
  readonly parent?: Agent;
}

const NO_CLAIMS: Readonly<Record<string, unknown>> = Object.freeze({});

/**
 * The immutable identity and limits a call runs under. One per request; shapes are compiled once and shared.
 * Everything on it may only ever narrow on the way down to data.
 */
export class Agent {
  /** Of this agent alone; log and audit know it by this. */
  readonly agentId: string = randomUUID();
  /** 0 for the agent of a request, one more for each sub-agent below it. */
  readonly depth: number;
  /** Whose sub-agent it is; null: nobody's. */
  readonly parent: Agent | null;
  /** What the configuration says of it: name, tier, filters and limits. */
  readonly shape: AgentShape;
  /** Whose rights its reads have. */
  readonly identity: Identity;
  /** Who is calling: the name that limits and audit records know the caller by. */
  readonly principal: string;
  /** The only tenant whose rows exist for it; null: it is bound to none. */
  readonly tenantId: string | number | null;
  /** What is known of the caller beside its name: the claims of its access token, or what the application chose. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Set once a session of that user was found or made, and not before. */
  readonly impersonatedUserId: string | null;
  /** Why it acts for somebody else, as audit records tell it; null: it does not. */
  readonly impersonationLabel: string | null;

  /** What threads the records of its calls in place of the `Mcp-Session-Id`; null: the application chose none. */
  readonly correlationId: string | null;

  /** @internal Made by `Parley.agentFor` and `SubAgents`. @throws TypeError when a sub-agent's shape was not narrowed from its parent's */
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

  /** Its tier. */
  get permissions() {
    return this.shape.permissions;
  }

  /** True master posture: no session token, no ACL user or role, not client mode. */
  get usesMasterKey(): boolean {
    return this.identity.kind === 'master' && !this.shape.clientMode;
  }
}
