/** Columns Parse keeps for itself. They never leave the store, whatever a query projects or renames. */
export const INTERNAL_COLUMNS = [
  '_hashed_password',
  '_password_history',
  '_password_changed_at',
  '_session_token',
  '_sessionToken',
  '_email_verify_token',
  '_email_verify_token_expires_at',
  '_perishable_token',
  '_perishable_token_expires_at',
  '_failed_login_count',
  '_account_lockout_expires_at',
  '_tombstone',
  '_auth_data',
  '_rperm',
  '_wperm',
  '_acl',
] as const;

/** One column per login provider, so the names cannot be listed beforehand. */
export const AUTH_DATA_PREFIX = '_auth_data_';

const INTERNAL = new Set<string>(INTERNAL_COLUMNS);

export function isInternalColumn(name: string): boolean {
  return INTERNAL.has(name) || name.startsWith(AUTH_DATA_PREFIX);
}
