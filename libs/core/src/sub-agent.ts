import { Agent } from './agent.js';
import { type Identity, isUserId, MASTER, sessionIdentity, tierCovers, toRoleName } from './identity.js';
import {
  type AgentDefinition,
  type AgentDefinitionOptions,
  compileAgentDefinition,
} from './agent-definition.js';
import { type NameFilter, narrowMethods } from './filters.js';
import { NarrowedRateLimiter, type RateLimiter } from './limits.js';

/**
 * How a sub-agent differs from its parent. Tools, methods, classes and filters narrow those of the parent; options that are
 * left out are those of the parent, except `permissions`, which defaults to `readonly`.
 */
export interface SubAgentOptions extends Omit<AgentDefinitionOptions, 'recursionDepth' | 'budget'> {
  /** Its name in audit records. Default: the parent's. */
  readonly name?: string;
  /**
   * The identity under which it reads, in the form below or in that of `Agent.identity`. An identity with rights that the
   * parent does not have is refused. Default, also for `{ kind: 'sessionToken' }` with an empty token: the parent's. Null is
   * an error.
   */
  readonly identity?: SubAgentIdentity;
}

/** The identity of a sub-agent. `master` is refused when the parent does not have the master key. */
export type SubAgentIdentity =
  'master' | { readonly user: string } | { readonly role: string } | { readonly session: string } | Identity;

/** The rule of sub-agents that an option violates. */
export type SubAgentRule =
  | 'parent'
  | 'recursion_limit'
  | 'permissions'
  | 'mutations'
  | 'client_mode'
  | 'master_atlas'
  | 'tenant'
  | 'classes'
  | 'identity';

/** The sub-agent would have more rights than its parent, or an option is invalid. */
export class SubAgentError extends Error {
  /** A constant, so that it is the same in two copies of the package. */
  override readonly name = 'SubAgentError';
  constructor(
    /** The violated rule. */
    readonly rule: SubAgentRule,
    message: string,
  ) {
    super(message);
  }
}

/**
 * Creates a sub-agent. It never has more than its parent: tools, methods, classes, rows, tenant, permission level, mutations,
 * mode, calls per window. Whether its parent may use its identity is checked in the database, by `SubAgents` on creation and
 * again on every call.
 * @throws SubAgentError when an option exceeds what the parent has
 * @throws TypeError when an option is invalid
 */
export function deriveAgent(parent: Agent, options: SubAgentOptions = {}): Agent {
  if (!(parent instanceof Agent)) throw new SubAgentError('parent', 'parent must be an agent');
  const definition = narrowDefinition(parent, options);
  const identity = ownIdentity(options.identity) ?? parent.identity;
  if (definition.clientMode && identity.kind !== 'sessionToken') {
    throw new SubAgentError('identity', 'a sub-agent in client mode has no master key: it needs a session');
  }
  return new Agent({
    definition,
    identity,
    principal: parent.principal,
    tenantId: definition.tenantId,
    parent,
  });
}

/** @throws SubAgentError for an identity that is invalid or empty */
function ownIdentity(identity: SubAgentIdentity | undefined): Identity | undefined {
  if (identity === undefined) return undefined;
  if (identity === 'master') return MASTER;
  // JavaScript callers may pass anything.
  if (typeof (identity as unknown) !== 'object' || (identity as unknown) === null)
    throw new SubAgentError('identity', 'sub-agent identity: expected { user }, { role } or { session }');
  if ('kind' in identity) return identityOfKind(identity);
  if ('session' in identity && typeof identity.session === 'string' && identity.session !== '')
    return sessionIdentity(identity.session);
  if ('user' in identity && isUserId(identity.user)) return { kind: 'aclUser', userId: identity.user };
  const role = 'role' in identity && typeof identity.role === 'string' ? toRoleName(identity.role) : '';
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
      if (typeof identity.role === 'string' && toRoleName(identity.role) !== '') return identity;
      break;
  }
  throw new SubAgentError('identity', 'sub-agent identity: it is nobody');
}

function narrowDefinition(parent: Agent, options: SubAgentOptions): AgentDefinition {
  const outer = parent.definition;
  const recursionDepth = outer.recursionDepth - 1;
  if (recursionDepth < 0)
    throw new SubAgentError('recursion_limit', 'sub-agent recursion limit reached: this agent may make none');
  const { name = outer.name, identity: _identity, ...limits } = options;
  const own = compileAgentDefinition(name, limits);
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
    classes: narrowClasses(own.classes, outer.classes),
    tenantId: narrowTenant(own.tenantId, parent.tenantId),
    tenants: outer.tenants,
    clientMode: narrowClientMode(options.clientMode, outer.clientMode),
    allowMutations: narrowMutations(options, own, outer),
    undoesWrites: outer.undoesWrites,
    writes: outer.writes === 'proposed' ? 'proposed' : own.writes,
    masterAtlas: narrowMasterAtlas(options.masterAtlas ?? null, outer.masterAtlas),
    maxResultBytes: narrowResultBytes(own.maxResultBytes, outer.maxResultBytes),
    rateLimiter: narrowLimiter(options, own, outer),
    limiters: outer.limiters,
    budget: outer.budget,
    recursionDepth,
    outer,
  });
}

function describeLineage(definition: AgentDefinition): string {
  return definition.outer ? `${describeLineage(definition.outer)} > ${definition.name}` : definition.name;
}

/** A sub-agent of a bounded agent never reads larger results. */
function narrowResultBytes(own: number | null, outer: number | null): number | null {
  return own === null || outer === null ? (own ?? outer) : Math.min(own, outer);
}

/** Its own limit counts under the names of both agents: creating the sub-agent again does not reset it. */
function narrowLimiter(options: SubAgentOptions, own: AgentDefinition, outer: AgentDefinition): RateLimiter {
  const { rateLimiter, rateLimit, rateWindow } = options;
  if (rateLimiter === undefined && rateLimit === undefined && rateWindow === undefined)
    return outer.rateLimiter;
  const limiter = own.rate
    ? outer.limiters.limiter(`agent ${describeLineage(outer)} > ${own.name}`, own.rate)
    : own.rateLimiter;
  return new NarrowedRateLimiter(outer.rateLimiter, limiter);
}

function narrowClasses(own: NameFilter, outer: NameFilter): NameFilter {
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

/** A parent without a tenant does not restrict it here; `tenantBinding` checks the parent again per class. */
function narrowTenant(own: string | number | null, outer: string | number | null): string | number | null {
  if (isBlank(own)) return outer;
  if (isBlank(outer) || own === outer) return own;
  throw new SubAgentError('tenant', "sub-agent tenantId differs from its parent's");
}

function narrowClientMode(own: boolean | undefined, outer: boolean): boolean {
  if (outer && own === false)
    throw new SubAgentError('client_mode', 'a sub-agent of a client-mode agent is in client mode itself');
  return outer || own === true;
}

function narrowMasterAtlas(own: boolean | null, outer: boolean): boolean {
  if (own === true && !outer)
    throw new SubAgentError('master_atlas', 'sub-agent masterAtlas: true under a parent that has it not');
  return own ?? outer;
}

function narrowMutations(options: SubAgentOptions, own: AgentDefinition, outer: AgentDefinition): boolean {
  if (options.allowMutations === true && !outer.allowMutations)
    throw new SubAgentError('mutations', 'sub-agent allowMutations: true under a parent that allows none');
  // Default: as the parent; in client mode none.
  return outer.allowMutations && (options.allowMutations ?? (outer.clientMode || own.allowMutations));
}
