import type { Agent } from '#agent';
import type { Credentials } from './credentials.js';

/** Who is calling: credentials in, the agent the request runs under out. Asked once per request. */
export abstract class Authenticator {
  /** @throws Unauthorized */
  abstract authenticate(credentials: Credentials): Promise<Agent>;
}
