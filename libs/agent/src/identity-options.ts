import { canonicalClassName } from './class-names.js';
import { type Identity, sessionIdentity } from './identity.js';
import { isUserId, roleNameOf } from './principals.js';

/** An id, or a user object or pointer. */
export type UserReference = string | { readonly className?: unknown; readonly objectId?: unknown };
/** A name, with or without `role:`, or a role object. */
export type RoleReference = string | { readonly className?: unknown; readonly name?: unknown };

/** Whom an agent acts for, at most one of four; what is left out, null or an empty token is not given. */
export interface IdentityOptions {
  readonly sessionToken?: string | null;
  readonly aclUser?: UserReference | null;
  readonly aclRole?: RoleReference | null;
  readonly impersonateUser?: UserReference | null;
  /** When the user has no session, make one. Default false. */
  readonly impersonateMint?: boolean | null;
  /** Who or what is behind it, for records. Text of at most 128 characters; anything else is none. */
  readonly impersonationLabel?: string | null;
  /** Other spellings of the three above. */
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

/** An order to act as a user by a session of that user, which is yet to be found. */
export interface ImpersonationOrder {
  readonly kind: 'impersonate';
  readonly userId: string;
  readonly mint: boolean;
}

export interface DeclaredIdentity {
  /** Null: none was given. */
  readonly identity: Identity | ImpersonationOrder | null;
  readonly label: string | null;
}

const MAX_LABEL = 128;

/** @throws TypeError naming the options when more than one identity is given, or one is none */
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
  return { identity: identityOf(given[0], options, user, mint), label };
}

function identityOf(
  given: string | undefined,
  { sessionToken, aclUser, aclRole }: IdentityOptions,
  user: UserReference | null | undefined,
  mint: boolean,
): Identity | ImpersonationOrder | null {
  switch (given) {
    case 'sessionToken':
      return sessionIdentity(sessionToken as string);
    case 'aclUser':
      return { kind: 'aclUser', userId: userIdOf(aclUser, given) };
    case 'aclRole':
      return { kind: 'aclRole', role: roleOf(aclRole, given) };
    case 'impersonateUser':
      return { kind: 'impersonate', userId: userIdOf(user, given), mint };
    default:
      return null;
  }
}

/** The id of a pointer into another class could be that of a user by chance. @throws TypeError naming the option */
export function userIdOf(user: unknown, option: string): string {
  if (isUserId(user)) return user;
  const { className, objectId } = (typeof user === 'object' && user !== null ? user : {}) as Record<
    string,
    unknown
  >;
  if (typeof className === 'string' && canonicalClassName(className) === '_User' && isUserId(objectId))
    return objectId;
  throw new TypeError(`${option}: expected the objectId of a user, or a pointer to _User`);
}

function roleOf(role: unknown, option: string): string {
  const { className, name } = (typeof role === 'object' && role !== null ? role : {}) as Record<
    string,
    unknown
  >;
  const isRole = typeof className === 'string' && canonicalClassName(className) === '_Role';
  const given = typeof role === 'string' ? role : isRole ? name : undefined;
  const text = typeof given === 'string' ? roleNameOf(given) : '';
  if (text === '') throw new TypeError(`${option}: expected the name of a role`);
  return text;
}

/** Trimmed text that records can carry, else null. */
export function impersonationLabel(value: unknown): string | null {
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' || text.length > MAX_LABEL ? null : text;
}
