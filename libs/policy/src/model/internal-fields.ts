import { toLowerCamel } from './field-names.js';

/** Columns that hold secrets: never read, filtered, sorted, grouped or returned, for any agent. */
export const CREDENTIAL_FIELDS: readonly string[] = [
  '_hashed_password',
  '_password_history',
  '_password_changed_at',
  '_session_token',
  '_sessionToken',
  'sessionToken',
  'session_token',
  '_email_verify_token',
  '_email_verify_token_expires_at',
  '_perishable_token',
  '_perishable_token_expires_at',
  '_failed_login_count',
  '_account_lockout_expires_at',
  '_auth_data',
  'authData',
  'bcryptPassword',
];

/** Columns that Parse keeps for itself: the credentials, and what carries row rights. */
export const INTERNAL_FIELDS: readonly string[] = [
  ...CREDENTIAL_FIELDS,
  'ACL',
  '_acl',
  '_rperm',
  '_wperm',
  '_tombstone',
];

/** One column per login provider: `_auth_data_facebook`, … Only on `_User`. */
export const AUTH_DATA_PREFIX = '_auth_data_';

const INTERNAL = new Set(INTERNAL_FIELDS);

/** One segment of a path, in whatever spelling it would be resolved from. */
export function isInternalField(segment: string): boolean {
  return INTERNAL.has(segment) || segment.startsWith(AUTH_DATA_PREFIX) || INTERNAL.has(toLowerCamel(segment));
}

/** A dotted path is internal when any of its segments is: `user._hashed_password`, `_rperm.0`. */
export function hasInternalSegment(path: string): boolean {
  return path.split('.').some(isInternalField);
}
