import { Logger } from '@nestjs/common';
import {
  agentOfRules,
  DEFAULT_ISSUER,
  type IssuerTrust,
  issuerTrust,
  OidcClient,
  type ProvenPerson,
} from '#auth';
import { type ConfigVersions, consoleIssuer, fourEyesDoubt, isFixed, type ParleyConfig } from '#config';
import { Agent, type Identity } from '#core';
import type { OidcSetting } from './oidc-sign-in.js';
import type { OperatorRights } from './operator-gate.js';

/** The rights that the configuration gives to operators. Names of operators are those of the served version. */
export function createOperatorRights(versions: ConfigVersions): OperatorRights {
  return {
    operators: () => versions.current.config.console.operators ?? [],
    approvers: versions.current.config.approvals.approvers,
    findAgent: (person) => findAgentOfPerson(versions, person),
    // Each version of the configuration makes its definitions anew.
    isCurrent: ({ definition }) => versions.findDefinition(definition.name) === definition,
  };
}

/**
 * The operator that a person of the issuer is now. Rules are read again for each request; a session of another issuer or
 * client is nobody's.
 */
function findAgentOfPerson(
  { current: { config, agents, identities } }: Pick<ConfigVersions, 'current'>,
  { issuer, clientId, principal, proven }: ProvenPerson,
): Agent | null {
  const { oidc } = config.console;
  if (!oidc || consoleIssuer(config) !== issuer || oidc.clientId !== clientId) return null;
  const name = agentOfRules(oidc.operators, proven);
  const definition = name === null ? undefined : agents.get(name);
  const identity = name === null ? undefined : identities.get(name);
  if (!definition || !identity || name === null) return null;
  // A reload may have made it an agent that needs more of its caller than the console has.
  if (!isFixed(config.agents[name]?.tenantId, identity)) return null;
  return new Agent({ definition, principal, identity: identity as Identity });
}

/** The sign-in with the issuer; null where none is configured. The keys of the issuer are those of its access tokens. */
export function openOidcSetting(config: ParleyConfig): OidcSetting | null {
  const { oidc } = config.console;
  const issuer = consoleIssuer(config);
  if (!oidc || issuer === null) return null;
  const [known] = config.auth.flatMap((rule) =>
    'oauth' in rule && rule.oauth.issuer === issuer ? [rule.oauth] : [],
  );
  const { clientId, clientSecret, redirectUri, scopes, operators: rules, maxAge } = oidc;
  const trust = issuerTrust(known ?? { issuer });
  void warnOfFourEyes(config, trust);
  const client = new OidcClient({
    issuer,
    clientId,
    clientSecret,
    redirectUri,
    scopes,
    rules,
    algorithms: known?.algorithms,
    clockSkew: known?.clockSkew ?? DEFAULT_ISSUER.clockSkew,
    trust,
  });
  return { issuer, client, host: new URL(redirectUri).host, longest: maxAge * 1000 };
}

/** Warns where a person could approve a call of their own. The issuer is asked beside the start, which needs no answer. */
async function warnOfFourEyes(config: ParleyConfig, { documents }: IssuerTrust): Promise<void> {
  // Only an issuer of pairwise subjects can raise a doubt that the configuration alone does not.
  if (fourEyesDoubt(config, ['pairwise']) === null) return;
  const metadata = fourEyesDoubt(config) === null ? await documents.current().catch(() => null) : null;
  const doubt = fourEyesDoubt(config, metadata?.['subject_types_supported']);
  if (doubt !== null) new Logger('Console').warn(`[SECURITY] ${doubt}`);
}
