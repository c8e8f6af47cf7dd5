import { type Authenticator, DelegatingAuthenticator } from '#auth';
import type { ConfigVersion, ConfigVersions } from '#config';

/**
 * Admits callers by the rules of the served configuration version and keeps them on that version. An agent of an
 * earlier version has no step-up scopes, because the current scopes may lead to different rights.
 */
export class VersionAuthenticator extends DelegatingAuthenticator {
  private made: { readonly version: ConfigVersion; readonly rules: Authenticator } | null = null;

  /** @param rulesOf creates the rules of a version, once per version */
  constructor(
    private readonly versions: Pick<ConfigVersions, 'current'>,
    private readonly rulesOf: (version: ConfigVersion) => Authenticator,
  ) {
    super();
  }

  protected inner(): Authenticator {
    const { current } = this.versions;
    if (this.made?.version !== current) this.made = { version: current, rules: this.rulesOf(current) };
    return this.made.rules;
  }
}
