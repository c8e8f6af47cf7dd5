import { type AgentShape, MASTER } from '#agent';
import { AnonymousRule, ApiKeyRule, type Authenticator, type AuthRule, RuleAuthenticator } from '#auth';
import type { AuthRuleConfig } from './config/config.js';
import type { LoadedConfig } from './config/load-config.js';

function createRule(rule: AuthRuleConfig, agents: ReadonlyMap<string, AgentShape>): AuthRule {
  const shape = agents.get(rule.agent);
  // loadConfig refuses a rule whose agent does not exist.
  if (!shape) throw new Error(`no agent named '${rule.agent}'`);
  return 'apiKey' in rule ? new ApiKeyRule(rule.apiKey, shape, MASTER) : new AnonymousRule(shape, MASTER);
}

export function createAuthenticator({ config, agents }: LoadedConfig): Authenticator {
  return new RuleAuthenticator(config.auth.map((rule) => createRule(rule, agents)));
}
