import {
  Agent,
  type AgentShape,
  type AgentShapeOptions,
  type Identity,
  isUserId,
  MASTER,
  roleNameOf,
  sessionIdentity,
} from '#agent';
import type { Editions } from './editions/editions.js';

/** As whom a request runs. */
export interface AgentChoice {
  /** Name of an agent of the configuration. */
  readonly agent: string;
  /** Who is calling, stable over requests: the key of rate limits, budgets and sessions. */
  readonly principal: string;
  /** With whose rights it reads. Default: those of the named agent, where these need no caller's session or token. */
  readonly identity?: { readonly user: string } | { readonly role: string } | { readonly session: string };
  /** Default: that of the named agent. */
  readonly tenantId?: string | number;
}

/**
 * As whom code calls: as a request does, or within limits of its own, by default with the master key. Calls within the same
 * object of limits count together.
 */
export type CodeChoice = Omit<AgentChoice, 'agent'> & { readonly agent: string | AgentShapeOptions };

/** @throws TypeError for a choice that cannot be */
export function chosenAgent(editions: Pick<Editions, 'current' | 'shapeOf'>, choice: AgentChoice): Agent {
  const shape = editions.shapeOf(choice.agent);
  if (!shape) throw new TypeError(`no agent is named '${choice.agent}'`);
  return made(shape, choice, () => ownIdentity(editions, choice.agent));
}

/** An agent that no configuration names, under the policy that is served. @throws TypeError */
export function agentWithin(shape: AgentShape, choice: Omit<AgentChoice, 'agent'>): Agent {
  return made(shape, choice, () => MASTER);
}

function made(shape: AgentShape, choice: Omit<AgentChoice, 'agent'>, own: () => Identity): Agent {
  const { principal, tenantId } = choice;
  const { name } = shape;
  if (typeof principal !== 'string' || principal === '')
    throw new TypeError(`'${name}' was chosen for nobody: principal must be a text`);
  if (tenantId !== undefined && !isTenant(tenantId))
    throw new TypeError(`'${name}' was chosen with a tenantId that is no text or number`);
  const identity = choice.identity === undefined ? own() : chosenIdentity(name, choice.identity);
  if (shape.clientMode && identity.kind !== 'sessionToken')
    throw new TypeError(`'${name}' is in client mode: it reads with a session alone`);
  return new Agent({ shape, principal, identity, ...(tenantId !== undefined && { tenantId }) });
}

/** An empty text, and a number that JSON writes as null, would be the tenant of all rows without one. */
function isTenant(value: unknown): value is string | number {
  return typeof value === 'string' ? value !== '' : Number.isFinite(value);
}

function ownIdentity(editions: Pick<Editions, 'current'>, agent: string): Identity {
  const own = editions.current.identities.get(agent);
  if (
    own === undefined ||
    own === 'callerSession' ||
    own.kind === 'impersonate' ||
    own.kind === 'claimedUser'
  )
    throw new TypeError(`'${agent}' reads with what callers show: choose its identity with it`);
  return own;
}

/** Chosen identities only ever narrow: none of them is the master key. */
function chosenIdentity(agent: string, identity: NonNullable<AgentChoice['identity']>): Identity {
  if ('session' in identity && typeof identity.session === 'string' && identity.session !== '')
    return sessionIdentity(identity.session);
  if ('user' in identity && typeof identity.user === 'string' && isUserId(identity.user))
    return { kind: 'aclUser', userId: identity.user };
  const role = 'role' in identity && typeof identity.role === 'string' ? roleNameOf(identity.role) : '';
  if (role === '') throw new TypeError(`'${agent}' was chosen with an identity that is nobody`);
  return { kind: 'aclRole', role };
}
