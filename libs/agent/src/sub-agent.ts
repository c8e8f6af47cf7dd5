import { Agent } from './agent.js';
import { type AgentShape, type AgentShapeOptions, compileAgentShape } from './agent-shape.js';
import { type Identity, MASTER, sessionIdentity } from './identity.js';
import { narrowMethods } from './method-filter.js';
import type { NameFilter } from './name-filter.js';
import { isUserId, roleNameOf } from './principals.js';
import { NarrowedRateLimiter, type RateLimiter } from './rate-limiter.js';
import { tierCovers } from './tier.js';

/**
 * What a sub-agent may be told apart from its parent. Tools, methods, classes and filters narrow the parent's; what is
 * left out is the parent's, but for `permissions`, which start at `readonly`.
 */
export interface SubAgentOptions extends Omit<AgentShapeOptions, 'recursionDepth' | 'budget'> {
  /** As records name it. Default: the parent's name. */
  readonly name?: string;
  /**
   * As whom it reads, in the same form as everywhere else, or in that of `Agent.identity`. It never widens: whose rights the
   * parent lacks is refused. Left out, and for an empty token of `{ kind: 'sessionToken' }`: the parent's. Null is an error.
   */
  readonly identity?: SubAgentIdentity;
}

/** With whose rights a sub-agent reads. `master` is refused below a parent that has not the master key. */
export type SubAgentIdentity =
  'master' | { readonly user: string } | { readonly role: string } | { readonly session: string } | Identity;

/** Which rule of sub-agents an option broke. */
export type SubAgentFault =
  | 'parent'
  | 'recursion_limit'
  | 'permissions'
  | 'mutations'
  | 'client_mode'
  | 'master_atlas'
  | 'tenant'
  | 'classes'
  | 'identity';

/** A sub-agent that would have been more than its parent, or less than nothing. */
export class SubAgentError extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'SubAgentError';
  constructor(
    /** Which rule it would have broken. */
    readonly fault: SubAgentFault,
    message: string,
  ) {
    super(message);
  }
}

/**
 * A sub-agent: never more than its parent in tools, methods, classes, rows, tenant, tier, mutations, mode or calls per
 * window. Whether its identity is one its parent may act for is asked of the database, on creation by `SubAgents` and
 * again on every call.
 * @throws SubAgentError when an option asks for more than the parent has
 * @throws TypeError when an option has the wrong shape
 */
export function deriveAgent(parent: Agent, options: SubAgentOptions = {}): Agent {
  if (!(parent instanceof Agent)) throw new SubAgentError('parent', 'parent must be an agent');
  const shape = narrowedShape(parent, options);
  const identity = ownIdentity(options.identity) ?? parent.identity;
  if (shape.clientMode && identity.kind !== 'sessionToken') {
    throw new SubAgentError('identity', 'a sub-agent in client mode has no master key: it needs a session');
  }
  return new Agent({ shape, identity, principal: parent.principal, tenantId: shape.tenantId, parent });
}

/** @throws SubAgentError for what is nobody's */
function ownIdentity(identity: SubAgentIdentity | undefined): Identity | undefined {
  if (identity === undefined) return undefined;
  if (identity === 'master') return MASTER;
  // Code without types gives anything.
  if (typeof (identity as unknown) !== 'object' || (identity as unknown) === null)
    throw new SubAgentError('identity', 'sub-agent identity: expected { user }, { role } or { session }');
  if ('kind' in identity) return identityOfKind(identity);
  if ('session' in identity && typeof identity.session === 'string' && identity.session !== '')
    return sessionIdentity(identity.session);
  if ('user' in identity && isUserId(identity.user)) return { kind: 'aclUser', userId: identity.user };
  const role = 'role' in identity && typeof identity.role === 'string' ? roleNameOf(identity.role) : '';
  if (role === '') throw new SubAgentError('identity', 'sub-agent identity: it is nobody');
  return { kind: 'aclRole', role };
}

function identityOfKind(identity: Identity): Identity | undefined {
  switch (identity.kind) {
    case 'master':
      return identity;
    case 'sessionToken':
      if (identity.token === '') return undefined;
      if (typeof identity.token === 'string') return identity;
      break;
    case 'aclUser':
      if (isUserId(identity.userId)) return identity;
      break;
    case 'aclRole':
      if (typeof identity.role === 'string' && roleNameOf(identity.role) !== '') return identity;
      break;
  }
  throw new SubAgentError('identity', 'sub-agent identity: it is nobody');
}

function narrowedShape(parent: Agent, options: SubAgentOptions): AgentShape {
  const outer = parent.shape;
  const recursionDepth = outer.recursionDepth - 1;
  if (recursionDepth < 0)
    throw new SubAgentError('recursion_limit', 'sub-agent recursion limit reached: this agent may make none');
  const { name = outer.name, identity: _identity, ...limits } = options;
  const own = compileAgentShape(name, limits);
  if (!tierCovers(outer.permissions, own.permissions)) {
    throw new SubAgentError(
      'permissions',
      `sub-agent permissions '${own.permissions}' exceeds parent's '${outer.permissions}'`,
    );
  }
  return Object.freeze({
    ...own,
    tools: own.tools.within(outer.tools),
    methods: narrowMethods(own.methods, outer.methods),
    classes: narrowedClasses(own.classes, outer.classes),
    tenantId: narrowedTenant(own.tenantId, parent.tenantId),
    clientMode: narrowedClientMode(options.clientMode, outer.clientMode),
    allowMutations: narrowedMutations(options, own, outer),
    masterAtlas: narrowedMasterAtlas(options.masterAtlas ?? null, outer.masterAtlas),
    rateLimiter: narrowedLimiter(options, own, outer),
    limiters: outer.limiters,
    budget: outer.budget,
    recursionDepth,
    outer,
  });
}

function lineOf(shape: AgentShape): string {
  return shape.outer ? `${lineOf(shape.outer)} > ${shape.name}` : shape.name;
}

/** Its own limit counts where the parent's does, by the names of both: making such a sub-agent anew gives nothing back. */
function narrowedLimiter(options: SubAgentOptions, own: AgentShape, outer: AgentShape): RateLimiter {
  const { rateLimiter, rateLimit, rateWindow } = options;
  if (rateLimiter === undefined && rateLimit === undefined && rateWindow === undefined)
    return outer.rateLimiter;
  const limiter = own.rate
    ? outer.limiters.limiter(`agent ${lineOf(outer)} > ${own.name}`, own.rate)
    : own.rateLimiter;
  return new NarrowedRateLimiter(outer.rateLimiter, limiter);
}

function narrowedClasses(own: NameFilter, outer: NameFilter): NameFilter {
  const both = own.within(outer);
  if (!own.only || !outer.only || (both.only?.size ?? 0) > 0) return both;
  const [wanted, had] = [own.only, outer.only].map((names) => [...names].sort().join(', '));
  throw new SubAgentError(
    'classes',
    `sub-agent classes [${wanted}] and parent's [${had}] have none in common`,
  );
}

const isBlank = (tenant: string | number | null) =>
  tenant === null || (typeof tenant === 'string' && tenant.trim() === '');

/** A parent without a tenant binds nothing here; classes with a tenant scope ask it again (see `tenantBinding`). */
function narrowedTenant(own: string | number | null, outer: string | number | null): string | number | null {
  if (isBlank(own)) return outer;
  if (isBlank(outer) || own === outer) return own;
  throw new SubAgentError('tenant', "sub-agent tenantId differs from its parent's");
}

function narrowedClientMode(own: boolean | undefined, outer: boolean): boolean {
  if (outer && own === false)
    throw new SubAgentError('client_mode', 'a sub-agent of a client-mode agent is in client mode itself');
  return outer || own === true;
}

function narrowedMasterAtlas(own: boolean | null, outer: boolean): boolean {
  if (own === true && !outer)
    throw new SubAgentError('master_atlas', 'sub-agent masterAtlas: true under a parent that has it not');
  return own ?? outer;
}

function narrowedMutations(options: SubAgentOptions, own: AgentShape, outer: AgentShape): boolean {
  if (options.allowMutations === true && !outer.allowMutations)
    throw new SubAgentError('mutations', 'sub-agent allowMutations: true under a parent that allows none');
  // Left out: the parent's, but a client that is told nothing allows none.
  return outer.allowMutations && (options.allowMutations ?? (outer.clientMode || own.allowMutations));
}
