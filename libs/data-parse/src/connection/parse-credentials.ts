import type { Identity } from '#agent';
import { StoreError } from '#data';

/** With whose rights Parse Server is asked: the master key's, or those of a session and explicitly not the master key's. */
export type ParseCredentials =
  { readonly kind: 'master' } | { readonly kind: 'session'; readonly token: string };

export const MASTER_KEY: ParseCredentials = Object.freeze({ kind: 'master' });

/** What may stand in a header, and nothing that could end one. */
const TOKEN = /^[\x21-\x7e]{1,512}$/;

/** @throws StoreError `session_ended` for what could be no token */
export function sessionCredentials(token: string): ParseCredentials {
  if (!TOKEN.test(token)) throw new StoreError('session_ended', { store: 'Parse Server' });
  return Object.defineProperty({ kind: 'session' as const, token }, 'token', { enumerable: false });
}

/**
 * @throws Error for an assumed user or role: nobody signed in as them, so no request can carry their rights. Whoever gets
 *   here with one has taken the wrong way.
 */
export function credentialsOf(identity: Identity): ParseCredentials {
  switch (identity.kind) {
    case 'master':
      return MASTER_KEY;
    case 'sessionToken':
      return sessionCredentials(identity.token);
    case 'aclUser':
    case 'aclRole':
      throw new Error(`REST surface cannot honor ${identity.kind}: it knows sessions and the master key`);
  }
}
