import { type Authenticator, DelegatingAuthenticator } from '#auth';
import type { ConfigVersion, ConfigVersions } from '#config';

/**
 * Admits callers by the rules of the version of the configuration that is served, which from then on is theirs. For an agent of an
 * earlier version there are no steps above: what more scopes lead to now is not what they led to then.
 */
export class VersionAuthenticator extends DelegatingAuthenticator {
  private made: { readonly version: ConfigVersion; readonly rules: Authenticator } | null = null;

  /** @param rulesOf makes the rules of a version, once for each */
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
