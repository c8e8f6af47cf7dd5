import { Agent, type AgentShape, type Identity } from '#agent';
import { AuthRule } from './auth-rule.js';
import { type Credentials, isDirectLoopback, presentsCredential } from './credentials.js';

/** Callers on this machine without any credential. A wrong credential is refused rather than ignored. */
export class AnonymousRule extends AuthRule {
  /** @param otherCredentials names of headers, besides the usual ones, that other rules take for credentials */
  constructor(
    private readonly shape: AgentShape,
    private readonly identity: Identity,
    private readonly otherCredentials: readonly string[] = [],
  ) {
    super();
  }

  recognise(credentials: Credentials): Agent | null {
    if (presentsCredential(credentials, this.otherCredentials) || !isDirectLoopback(credentials)) return null;
    return new Agent({
      shape: this.shape,
      identity: this.identity,
      principal: `anonymous:${this.shape.name}`,
    });
  }

  override knows(): Promise<boolean> {
    return Promise.resolve(false);
  }
}
