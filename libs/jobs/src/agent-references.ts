import { Agent, type AgentShape, type Identity, MASTER, sessionIdentity } from '#agent';
import type { SealedText } from '#dispatcher';

/** The named agents as they are configured now. */
export interface ConfiguredAgents {
  /** @returns `undefined` when there is no such agent, or none any more */
  shapeOf(name: string): AgentShape | undefined;
  /** Whether it is, or was before the configuration was read anew, the shape of that agent. */
  knows(shape: AgentShape): boolean;
}

interface Reference {
  readonly shape: string;
  readonly principal: string;
  readonly tenantId: string | number | null;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly identity: { readonly kind: Identity['kind']; readonly name?: string };
  readonly impersonatedUserId: string | null;
  readonly impersonationLabel: string | null;
}

/**
 * Writes down whose call a task is, and makes that agent again later, under the limits its shape has by then. Sealed,
 * because an identity may be a session token.
 */
export class AgentReferences {
  /** @param configured an agent that is gone is not made again */
  constructor(
    private readonly configured: ConfiguredAgents,
    private readonly sealed: SealedText,
  ) {}

  /** @returns `undefined` for a sub-agent, whose limits no name stands for */
  async write(agent: Agent, taskId: string): Promise<string | undefined> {
    if (agent.parent || !this.configured.knows(agent.shape)) return undefined;
    const { impersonatedUserId, impersonationLabel } = agent;
    const reference: Reference = {
      shape: agent.shape.name,
      impersonatedUserId,
      impersonationLabel,
      principal: agent.principal,
      tenantId: agent.tenantId,
      claims: agent.claims,
      identity: named(agent.identity),
    };
    return this.sealed.seal(JSON.stringify(reference), taskId);
  }

  /** @returns `undefined` when it was not written for this task, or its agent is no longer configured */
  async read(text: string, taskId: string): Promise<Agent | undefined> {
    const plain = await this.sealed.open(text, taskId);
    if (plain === undefined) return undefined;
    const { shape: name, identity, impersonatedUserId, ...known } = JSON.parse(plain) as Reference;
    const shape = this.configured.shapeOf(name);
    const made = unnamed(identity);
    if (!shape || !made) return undefined;
    return new Agent({
      ...known,
      shape,
      identity: made,
      ...(impersonatedUserId !== null && { impersonatedUserId }),
    });
  }
}

function named(identity: Identity): Reference['identity'] {
  switch (identity.kind) {
    case 'master':
      return { kind: 'master' };
    case 'sessionToken':
      return { kind: identity.kind, name: identity.token };
    case 'aclUser':
      return { kind: identity.kind, name: identity.userId };
    case 'aclRole':
      return { kind: identity.kind, name: identity.role };
  }
}

function unnamed({ kind, name }: Reference['identity']): Identity | undefined {
  if (kind === 'master') return MASTER;
  if (name === undefined) return undefined;
  if (kind === 'sessionToken') return sessionIdentity(name);
  return kind === 'aclUser' ? { kind, userId: name } : { kind, role: name };
}
