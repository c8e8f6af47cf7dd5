import type { IncomingHttpHeaders } from 'node:http';
import type { Agent } from '#agent';

/** What is known of a request before anybody vouches for it. Headers with `_` in their names are gone already. */
export interface CredentialSource {
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly remoteAddress: string | undefined;
  /** HTTP verb. */
  readonly method: string;
}

/** Turns a request's credentials into the agent it runs as. Asked at most once per request. */
export abstract class Authenticator {
  /** Value of `WWW-Authenticate` on a 401. Default: the header is not sent. */
  readonly challenge?: string | undefined;

  /** @throws Unauthorized when the credentials are not recognised; anything else is answered as our own fault */
  abstract authenticate(request: CredentialSource): Promise<Agent>;
}
