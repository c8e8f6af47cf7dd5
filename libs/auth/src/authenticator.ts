import type { IncomingHttpHeaders } from 'node:http';
import type { Agent } from '#agent';
import { mayPresentCredential } from './credentials.js';
import type { StepUp } from './oauth/scope-ladder.js';

/** What is known of a request before anybody vouches for it. Headers with `_` in their names are gone already. */
export interface CredentialSource {
  /** As Node gives them, names in lower case. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** Of the peer, which may be a proxy. */
  readonly remoteAddress: string | undefined;
  /** HTTP verb. */
  readonly method: string;
}

/** Turns a request's credentials into the agent it runs as. Asked at most once per request. */
export abstract class Authenticator {
  /** Value of `WWW-Authenticate` on a 401 to whoever showed nothing. Default: the header is not sent. */
  readonly challenge?: string | undefined;

  /**
   * Who is calling.
   * @throws Unauthorized when the credentials are not recognised
   * @throws InsufficientScope when they are, and do not reach far enough
   * @throws AuthenticationUnavailable when nobody can tell; anything else is answered as our own fault
   */
  abstract authenticate(request: CredentialSource): Promise<Agent>;

  /**
   * Whether a request shows a credential at all: one that does not is no attempt to sign in, and is not recorded as one.
   * Default: any header besides those that clients, browsers and proxies send anyway may be one.
   */
  showsCredential(request: Pick<CredentialSource, 'headers'>): boolean {
    return mayPresentCredential(request);
  }

  /** Value of `WWW-Authenticate` on the 401 that answers this request. */
  challengeTo(_request: Pick<CredentialSource, 'headers'>): string | undefined {
    return this.challenge;
  }

  /** Value of `WWW-Authenticate` on a 403 for want of scopes. Default: the header is not sent. */
  scopeChallenge(_scopes: readonly string[]): string | undefined {
    return undefined;
  }

  /** What an agent could have been with more scopes, nearest first. */
  stepsAbove(_agent: Agent): readonly StepUp[] {
    return [];
  }
}
