import { randomUUID } from 'node:crypto';
import type { AgentDefinition } from './agent-definition.js';
import { canonicalClassName } from './filters.js';

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
  /** The identity whose rights its reads have. */
  readonly identity: Identity;
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

  /** @internal Made by `Parley.agentFor` and `SubAgents`. @throws TypeError when a sub-agent's definition was not narrowed from its parent's */
  constructor(options: AgentOptions) {
    this.definition = options.definition;
    this.parent = options.parent ?? null;
    if (this.definition.outer !== (this.parent?.definition ?? null))
      throw new TypeError('the definition of a sub-agent is narrowed from that of its parent');
    this.depth = this.parent ? this.parent.depth + 1 : 0;
    this.identity = options.identity ?? MASTER;
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
    Object.freeze(this);
  }

  /** Its permission level. */
  get permissions() {
    return this.definition.permissions;
  }

  /** Whether it reads with the master key: no session token, no ACL user or role, not client mode. */
  get usesMasterKey(): boolean {
    return this.identity.kind === 'master' && !this.definition.clientMode;
  }
}

/**
 * Whom something belongs to that is kept for a caller: tasks, exports, approvals, keys of writes, streams. Two tokens
 * of one person with different tenants or agents are two owners: what is kept for one does not exist for the other.
 */
export interface Owner {
  readonly principal: string;
  readonly tenant: string | number | null;
  /** The name of the agent's definition. */
  readonly agent: string;
}

/** The owner of what is kept for this agent's caller. */
export function toOwner({ principal, tenantId, definition }: Agent): Owner {
  return { principal, tenant: tenantId, agent: definition.name };
}

/** The owner as one text. */
export function callerKey(agent: Agent): string {
  const { principal, tenant, agent: name } = toOwner(agent);
  return JSON.stringify([principal, tenant, name]);
}

/** Whether both are the same owner. */
export function isSameOwner(one: Owner, other: Owner): boolean {
  return one.principal === other.principal && one.tenant === other.tenant && one.agent === other.agent;
}

/** The identity under which data is read. Exactly one per agent; never taken from tool arguments. */
export type Identity =
  | { readonly kind: 'master' }
  | { readonly kind: 'sessionToken'; readonly token: string }
  | { readonly kind: 'aclUser'; readonly userId: string }
  | { readonly kind: 'aclRole'; readonly role: string };

export const MASTER: Identity = Object.freeze({ kind: 'master' });

/** The token is not enumerable, so that no log line and no serialised agent contains it. */
export function sessionIdentity(token: string): Identity {
  const identity = Object.defineProperty({ kind: 'sessionToken' as const, token }, 'token', {
    enumerable: false,
  });
  return Object.freeze(identity);
}

const MAX_LABEL = 128;

export type AuthType = 'master_key' | 'session_token' | 'acl_user' | 'acl_role';

const AUTH_TYPES: Record<Identity['kind'], AuthType> = {
  master: 'master_key',
  sessionToken: 'session_token',
  aclUser: 'acl_user',
  aclRole: 'acl_role',
};

/** The kind of an identity in audit records. */
export function authType(identity: Identity): AuthType {
  return AUTH_TYPES[identity.kind];
}

/** The assumed user id or role name. Null for the master key, and for a session, whose user is the principal. */
export function readAssumedName(identity: Identity): string | null {
  if (identity.kind === 'aclUser') return identity.userId;
  return identity.kind === 'aclRole' ? identity.role : null;
}

/** Every caller, signed in or not. */
export const PUBLIC_PRINCIPAL = '*';

const ROLE_PREFIX = 'role:';
const USER_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** The principals whose rights a call has. Resolved once per call, before it reads data. */
export interface Principals {
  /** `*`, a user id, `role:<name>`: matched against row and class-level permissions. `null`: the master key. */
  readonly strings: readonly string[] | null;
  /** Null when there is no concrete user, as with a role alone. */
  readonly userId: string | null;
}

/** The master key: row and class-level permissions are not checked. */
export const MASTER_PRINCIPALS: Principals = Object.freeze({ strings: null, userId: null });

export function createPrincipals(userId: string | null, roles: Iterable<string>): Principals {
  const own = userId === null ? [] : [userId];
  const held = [...roles].map((role) => ROLE_PREFIX + role);
  return Object.freeze({
    strings: Object.freeze([...new Set([PUBLIC_PRINCIPAL, ...own, ...held])]),
    userId,
  });
}

/** Of roles without `*`: a row must have no ACL or name one of these roles. */
export function strictPrincipals(roles: Iterable<string>): Principals {
  const strings = (createPrincipals(null, roles).strings ?? []).filter((name) => name !== PUBLIC_PRINCIPAL);
  return Object.freeze({ strings: Object.freeze(strings), userId: null });
}

/** Rejects ids that could be read as a role or as more than one user. */
export function isUserId(value: unknown): value is string {
  return typeof value === 'string' && USER_ID.test(value);
}

/** The name of a role, given with or without the `role:` prefix. */
export function toRoleName(text: string): string {
  return text.startsWith(ROLE_PREFIX) ? text.slice(ROLE_PREFIX.length) : text;
}

export function isRolePrincipal(principal: string): boolean {
  return principal.startsWith(ROLE_PREFIX);
}

/** The agent of the request, whose policy, budgets and turns its sub-agents share, whatever their names. */
export function findRootAgent(agent: Agent): Agent {
  let root = agent;
  while (root.parent) root = root.parent;
  return root;
}

/** The database rights that a sub-agent would have beyond those of its parent. */
export interface Widening {
  readonly reason: 'child_master_key' | 'child_extra_principals';
  readonly parent: readonly string[];
  /** Empty for the master key. */
  readonly child: readonly string[];
  /** Principals of the child that the parent does not have. */
  readonly extra: readonly string[];
}

/** Null when the rights of the child are a subset of those of the parent; the master key has all. */
export function findWidening(parent: Principals, child: Principals): Widening | null {
  if (parent.strings === null) return null;
  if (child.strings === null)
    return { reason: 'child_master_key', parent: parent.strings, child: [], extra: [] };
  const held = new Set(parent.strings);
  const extra = child.strings.filter((principal) => !held.has(principal));
  if (extra.length === 0) return null;
  return { reason: 'child_extra_principals', parent: parent.strings, child: child.strings, extra };
}

/** An id, or a user object or pointer. */
export type UserReference = string | { readonly className?: unknown; readonly objectId?: unknown };
/** A name, with or without `role:`, or a role object. */
type RoleReference = string | { readonly className?: unknown; readonly name?: unknown };

/** The user or role that an agent acts as: at most one of four. Null and an empty token count as left out. */
export interface IdentityOptions {
  readonly sessionToken?: string | null;
  readonly aclUser?: UserReference | null;
  readonly aclRole?: RoleReference | null;
  readonly impersonateUser?: UserReference | null;
  /** Creates a session when the user has none. Default false. */
  readonly impersonateMint?: boolean | null;
  /** The reason, for audit records. Text of at most 128 characters; anything else is ignored. */
  readonly impersonationLabel?: string | null;
  /** Alternative spellings of the three above. */
  readonly impersonationUser?: UserReference | null;
  readonly impersonationMint?: boolean | null;
  readonly impersonateLabel?: string | null;
}

export const IDENTITY_OPTIONS = [
  'sessionToken',
  'aclUser',
  'aclRole',
  'impersonateUser',
  'impersonationUser',
  'impersonateMint',
  'impersonationMint',
  'impersonationLabel',
  'impersonateLabel',
] as const satisfies readonly (keyof IdentityOptions)[];

/** To act as a user through a session of that user, which is not looked up yet. */
export interface ImpersonationOrder {
  readonly kind: 'impersonate';
  readonly userId: string;
  readonly mint: boolean;
}

export interface DeclaredIdentity {
  /** Null: none was declared. */
  readonly identity: Identity | ImpersonationOrder | null;
  readonly label: string | null;
}

/** @throws TypeError naming the options when more than one identity is given, or one is invalid */
export function readIdentityOptions(options: IdentityOptions): DeclaredIdentity {
  const user = options.impersonateUser ?? options.impersonationUser;
  const given = [
    ['sessionToken', options.sessionToken === '' ? null : options.sessionToken],
    ['aclUser', options.aclUser],
    ['aclRole', options.aclRole],
    ['impersonateUser', user],
  ].flatMap(([name, value]) => (value === undefined || value === null ? [] : [name as string]));
  if (given.length > 1) throw new TypeError(`${given.join(', ')} are mutually exclusive`);
  const label = impersonationLabel(options.impersonationLabel ?? options.impersonateLabel);
  const mint = options.impersonateMint ?? options.impersonationMint ?? false;
  if (mint && given[0] !== 'impersonateUser') throw new TypeError('impersonateMint needs impersonateUser');
  return { identity: readIdentity(given[0], options, user, mint), label };
}

function readIdentity(
  given: string | undefined,
  { sessionToken, aclUser, aclRole }: IdentityOptions,
  user: UserReference | null | undefined,
  mint: boolean,
): Identity | ImpersonationOrder | null {
  switch (given) {
    case 'sessionToken':
      return sessionIdentity(sessionToken as string);
    case 'aclUser':
      return { kind: 'aclUser', userId: readUserId(aclUser, given) };
    case 'aclRole':
      return { kind: 'aclRole', role: readRole(aclRole, given) };
    case 'impersonateUser':
      return { kind: 'impersonate', userId: readUserId(user, given), mint };
    default:
      return null;
  }
}

/** A pointer must be to `_User`: another class may have an object of the same id. @throws TypeError naming the option */
export function readUserId(user: unknown, option: string): string {
  if (isUserId(user)) return user;
  const { className, objectId } = (typeof user === 'object' && user !== null ? user : {}) as Record<
    string,
    unknown
  >;
  if (typeof className === 'string' && canonicalClassName(className) === '_User' && isUserId(objectId))
    return objectId;
  throw new TypeError(`${option}: expected the objectId of a user, or a pointer to _User`);
}

function readRole(role: unknown, option: string): string {
  const { className, name } = (typeof role === 'object' && role !== null ? role : {}) as Record<
    string,
    unknown
  >;
  const isRole = typeof className === 'string' && canonicalClassName(className) === '_Role';
  const given = typeof role === 'string' ? role : isRole ? name : undefined;
  const text = typeof given === 'string' ? toRoleName(given) : '';
  if (text === '') throw new TypeError(`${option}: expected the name of a role`);
  return text;
}

/** The trimmed text, or null when it is empty, too long or no text. */
export function impersonationLabel(value: unknown): string | null {
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' || text.length > MAX_LABEL ? null : text;
}

export const TIERS = ['readonly', 'write', 'admin'] as const;
/** The permission level of an agent; each includes those before it. */
export type Tier = (typeof TIERS)[number];

export function isTier(value: unknown): value is Tier {
  return TIERS.includes(value as Tier);
}

/** Whether level `held` includes level `needed`. An unknown level counts as `readonly`. */
export function tierCovers(held: Tier, needed: Tier): boolean {
  return Math.max(TIERS.indexOf(held), 0) >= TIERS.indexOf(needed);
}
