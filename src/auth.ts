import { Logger } from '@nestjs/common';
import { type AgentShape, type ImpersonationOrder, sessionIdentity } from '#agent';
import {
  AnonymousRule,
  ApiKeyRule,
  type Authenticator,
  type AuthRule,
  CallerSessionRule,
  ImpersonatedSessions,
  ImpersonatingRule,
  ParseSessionRule,
  RuleAuthenticator,
  SessionOwners,
} from '#auth';
import { type Impersonation, ImpersonationError, type PrincipalDirectory } from '#data';
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

/** The caller is told no more than that it is not let in; the operator, why. */
class FoundSessions extends ImpersonatedSessions {
  private readonly logger = new Logger('Impersonation');

  constructor(private readonly impersonation: Impersonation) {
    super();
  }

  async tokenFor(order: ImpersonationOrder): Promise<string | null> {
    try {
      return await this.impersonation.tokenFor(order);
    } catch (error) {
      if (!(error instanceof ImpersonationError)) throw error;
      this.logger.warn(error.message);
      return null;
    }
  }
}

interface Sessions {
  readonly owners: SessionOwners;
  readonly impersonated: ImpersonatedSessions;
}

/** Replaced by a session, the caller's own or a found one; were it not, the empty token admits nobody. */
const NOBODY = sessionIdentity('');

function createRule(
  rule: AuthRuleConfig,
  shape: AgentShape,
  identity: AgentIdentity,
  { owners, impersonated }: Sessions,
): AuthRule {
  if ('parseSession' in rule) return new ParseSessionRule(shape, owners);
  const fixed = identity === 'callerSession' || identity.kind === 'impersonate' ? NOBODY : identity;
  const admission =
    'apiKey' in rule ? new ApiKeyRule(rule.apiKey, shape, fixed) : new AnonymousRule(shape, fixed);
  if (identity === 'callerSession') return new CallerSessionRule(admission, owners);
  return identity.kind === 'impersonate'
    ? new ImpersonatingRule(admission, identity, impersonated)
    : admission;
}

export function createAuthenticator(
  { config, agents, identities }: LoadedConfig,
  directory: PrincipalDirectory,
  impersonation: Impersonation,
): Authenticator {
  const sessions = {
    owners: new DirectorySessions(directory),
    impersonated: new FoundSessions(impersonation),
  };
  return new RuleAuthenticator(
    config.auth.map((rule) => {
      const shape = agents.get(rule.agent);
      const identity = identities.get(rule.agent);
      // loadConfig refuses a rule whose agent does not exist.
      if (!shape || !identity) throw new Error(`no agent named '${rule.agent}'`);
      return createRule(rule, shape, identity, sessions);
    }),
  );
}
