import { type AgentShape, sessionIdentity } from '#agent';
import {
  AnonymousRule,
  ApiKeyRule,
  type Authenticator,
  type AuthRule,
  CallerSessionRule,
  ParseSessionRule,
  RuleAuthenticator,
  SessionOwners,
} from '#auth';
import type { PrincipalDirectory } from '#data';
import type { AgentIdentity } from './config/agent-identity.js';
import type { AuthRuleConfig } from './config/config.js';
import type { LoadedConfig } from './config/load-config.js';

class DirectorySessions extends SessionOwners {
  constructor(private readonly directory: PrincipalDirectory) {
    super();
  }

  async userOf(token: string): Promise<string | null> {
    return (await this.directory.ownerOfSession(token))?.userId ?? null;
  }
}

function createRule(
  rule: AuthRuleConfig,
  shape: AgentShape,
  identity: AgentIdentity,
  owners: SessionOwners,
): AuthRule {
  if ('parseSession' in rule) return new ParseSessionRule(shape, owners);
  // Replaced by the caller's own session; were it not, the empty token admits nobody.
  const fixed = identity === 'callerSession' ? sessionIdentity('') : identity;
  const admission =
    'apiKey' in rule ? new ApiKeyRule(rule.apiKey, shape, fixed) : new AnonymousRule(shape, fixed);
  return identity === 'callerSession' ? new CallerSessionRule(admission, owners) : admission;
}

export function createAuthenticator(
  { config, agents, identities }: LoadedConfig,
  directory: PrincipalDirectory,
): Authenticator {
  const owners = new DirectorySessions(directory);
  return new RuleAuthenticator(
    config.auth.map((rule) => {
      const shape = agents.get(rule.agent);
      const identity = identities.get(rule.agent);
      // loadConfig refuses a rule whose agent does not exist.
      if (!shape || !identity) throw new Error(`no agent named '${rule.agent}'`);
      return createRule(rule, shape, identity, owners);
    }),
  );
}
