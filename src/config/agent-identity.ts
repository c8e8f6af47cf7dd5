import { type Identity, isUserId, MASTER, roleNameOf } from '#agent';
import type { AgentConfig, AuthRuleConfig } from './config.js';
import type { ConfigFault } from './config-faults.js';

/** With whose rights a named agent reads: always the same, or those of the session its caller shows. */
export type AgentIdentity = Identity | 'callerSession';

/**
 * @param rules an agent that nothing but sessions leads to reads with them, unless it says otherwise
 * @param faults what could not be meant is added here
 */
export function readAgentIdentity(
  name: string,
  agent: AgentConfig,
  rules: readonly AuthRuleConfig[],
  faults: ConfigFault[],
): AgentIdentity {
  const { identity, clientMode } = agent;
  const path = `agents.${name}.identity`;
  if (clientMode) {
    const session = typeof identity === 'object' && 'session' in identity;
    if (identity !== undefined && !session)
      faults.push({
        path,
        message: 'clientMode has no master key: only { session: caller } can be read with',
      });
    return 'callerSession';
  }
  if (identity === undefined) {
    const own = rules.filter((rule) => rule.agent === name);
    return own.length > 0 && own.every((rule) => 'parseSession' in rule) ? 'callerSession' : MASTER;
  }
  if (identity === 'master') return MASTER;
  if ('session' in identity) return 'callerSession';
  if ('user' in identity) {
    if (!isUserId(identity.user))
      faults.push({ path: `${path}.user`, message: 'must be the objectId of a user' });
    return { kind: 'aclUser', userId: identity.user };
  }
  const role = roleNameOf(identity.role);
  if (role === '') faults.push({ path: `${path}.role`, message: 'must be the name of a role' });
  return { kind: 'aclRole', role };
}

/** A rule and the identity of its agent must be able to meet in one caller. */
export function identityFaults(
  rules: readonly AuthRuleConfig[],
  agents: Readonly<Record<string, AgentConfig>>,
  identities: ReadonlyMap<string, AgentIdentity>,
): ConfigFault[] {
  return rules.flatMap((rule, index): ConfigFault[] => {
    const path = `auth.${index}.agent`;
    if ('anonymous' in rule && identities.get(rule.agent) === 'callerSession') {
      return [{ path, message: `'${rule.agent}' reads with a session, which anonymous callers do not show` }];
    }
    const given = agents[rule.agent]?.identity;
    if ('parseSession' in rule && given !== undefined && identities.get(rule.agent) !== 'callerSession') {
      return [
        { path, message: `'${rule.agent}' has an identity of its own, so no session can be its identity` },
      ];
    }
    return [];
  });
}
