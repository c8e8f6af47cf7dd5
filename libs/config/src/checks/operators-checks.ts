import { type ConfigIssue, noAgent } from '../config-error.js';
import type { ParleyConfig } from '../config.js';
import { type Plain } from '../schema/option.js';
import { type AgentIdentity, isTrustworthyUrl } from '#auth';
import { isSafeAddress } from '../sections/server.js';
import { ConsoleOidcConfig } from '../sections/operators.js';

/** Approvals by another person without approvers, and webhooks that would show its cases to others. */
export function approvalErrors({
  approvals,
  agents,
}: Pick<ParleyConfig, 'approvals' | 'agents'>): ConfigIssue[] {
  const { mode, approvers, webhook } = approvals;
  const errors: ConfigIssue[] = approvers
    .filter((name) => !Object.hasOwn(agents, name))
    .map((name) => ({ path: 'approvals.approvers', ...noAgent(name, agents) }));
  if (mode !== 'client' && approvers.length === 0)
    errors.push({
      path: 'approvals.approvers',
      message: `mode '${mode}' needs somebody who decides`,
      related: ['approvals.mode'],
    });
  if (webhook && mode === 'client')
    errors.push({
      path: 'approvals.webhook',
      message: "mode 'client' has nothing to announce",
      related: ['approvals.mode'],
    });
  if (webhook && !isSafeAddress(webhook.url))
    errors.push({
      path: 'approvals.webhook.url',
      message: 'must be an https address, or one of this machine',
    });
  return errors;
}

type ConsoleConfig = Pick<ParleyConfig, 'console' | 'agents' | 'auth' | 'server'>;

/**
 * Operators that do not exist, or that sign in without a credential.
 * @param inApplication whether an application serves it, below the path of MCP
 */
export function consoleErrors(
  config: ConsoleConfig,
  identities: ReadonlyMap<string, AgentIdentity> = new Map(),
  inApplication = false,
): ConfigIssue[] {
  const { console, agents, auth, server } = config;
  const { operators } = console;
  const oidc = console.oidc
    ? [
        ...addressErrors(console.oidc, server.path, inApplication),
        ...oidcErrors(console.oidc, config, identities),
      ]
    : [];
  if (operators === null) return oidc;
  const path = 'console.operators';
  const errors = operators.flatMap((name): ConfigIssue[] => {
    if (!Object.hasOwn(agents, name)) return [{ path, ...noAgent(name, agents) }];
    const anonymous = auth.some((rule) => 'anonymous' in rule && rule.agent === name);
    return anonymous
      ? [{ path, message: `'${name}' is reached without a credential: an operator signs in` }]
      : [];
  });
  if (!inApplication && /^\/console(\/|$)/.test(server.path))
    errors.push({ path: 'server.path', message: 'is where the console is served' });
  return [...errors, ...oidc];
}

/** The issuer of `console.oidc`; null where `auth` does not name exactly one. */
export function consoleIssuer({
  console: { oidc },
  auth,
}: Pick<ParleyConfig, 'console' | 'auth'>): string | null {
  const issuers = new Set(auth.flatMap((rule) => ('oauth' in rule ? [rule.oauth.issuer] : [])));
  const [only] = issuers;
  return oidc?.issuer ?? (issuers.size === 1 ? (only ?? null) : null);
}

/**
 * Why a person might approve a call of their own: a request is one's own by its principal, and the principal of a person
 * is the issuer and `sub`. Null: nothing speaks for it, or nobody who signs in with the issuer decides.
 * @param subjectTypes `subject_types_supported` of the issuer's metadata, when it is known
 */
export function fourEyesDoubt(
  config: Pick<ParleyConfig, 'console' | 'auth' | 'approvals'>,
  subjectTypes?: unknown,
): string | null {
  const { console, auth, approvals } = config;
  const issuer = consoleIssuer(config);
  const mapped = new Set(console.oidc?.operators.map(({ agent }) => agent));
  const approvers = approvals.approvers.filter((name) => mapped.has(name));
  if (issuer === null || approvers.length === 0) return null;
  const known = new Set(auth.flatMap((rule) => ('oauth' in rule ? [rule.oauth.issuer] : [])));
  const who = `operators who sign in with ${issuer} decide approvals (${approvers.join(', ')})`;
  const others = [...known].filter((other) => other !== issuer);
  if (others.length > 0)
    return `${who}, and access tokens of ${others.join(', ')} name the same person differently: it could approve a call of its own`;
  if (known.has(issuer) && Array.isArray(subjectTypes) && subjectTypes.includes('pairwise'))
    return `${who}, and it may name a person differently for each client (subject_types_supported: pairwise): the person could approve a call of its own`;
  return null;
}

const CALLBACK = '/console/session/oidc/callback';

/** The path below which an application has the console, by that of MCP. The root adds nothing: `//` begins the name of a host. */
export const consoleBase = (mcp: string): string => mcp.replace(/\/$/, '');

/** The address that an issuer leads back to. The prefix of an application is not known yet. */
function addressErrors(
  { redirectUri }: Plain<ConsoleOidcConfig>,
  mcp: string,
  inApplication: boolean,
): ConfigIssue[] {
  const path = 'console.oidc.redirectUri';
  if (!isTrustworthyUrl(redirectUri) || /[?"\\\s]/.test(redirectUri))
    return [{ path, message: 'must be an https URL (http only on this machine)' }];
  const { pathname } = new URL(redirectUri);
  const expected = inApplication ? `${consoleBase(mcp)}${CALLBACK}` : CALLBACK;
  if (pathname === expected || (inApplication && pathname.endsWith(expected))) return [];
  return [{ path, message: `must ${inApplication ? 'end with' : 'have'} the path ${expected}` }];
}

function oidcErrors(
  oidc: Plain<ConsoleOidcConfig>,
  config: ConsoleConfig,
  identities: ReadonlyMap<string, AgentIdentity>,
): ConfigIssue[] {
  const path = 'console.oidc';
  const errors: ConfigIssue[] = [];
  const issuer = consoleIssuer(config);
  if (config.console.operators === null)
    errors.push({
      path,
      message: 'nobody can sign in while console.operators is null',
      related: ['console.operators'],
    });
  if (issuer === null)
    errors.push({
      path: `${path}.issuer`,
      message: 'is needed where auth does not name exactly one issuer',
      related: ['auth.*'],
    });
  else if (!isTrustworthyUrl(issuer) || issuer.includes('?'))
    errors.push({ path: `${path}.issuer`, message: 'must be an https URL (http only on this machine)' });
  for (const [index, { agent }] of oidc.operators.entries())
    errors.push(...ruleErrors(agent, `${path}.operators.${index}.agent`, config, identities));
  return errors;
}

function ruleErrors(
  agent: string,
  path: string,
  { console: { operators }, agents }: ConsoleConfig,
  identities: ReadonlyMap<string, AgentIdentity>,
): ConfigIssue[] {
  if (!Object.hasOwn(agents, agent)) return [{ path, ...noAgent(agent, agents) }];
  if (!(operators ?? []).includes(agent))
    return [{ path, message: `'${agent}' is not in console.operators`, related: ['console.operators'] }];
  if (!isFixed(agents[agent]?.tenantId, identities.get(agent)))
    return [
      {
        path,
        message: `'${agent}' reads with the session or the claims of its caller, which the console does not have`,
        related: [`agents.${agent}.identity`, `agents.${agent}.tenantId`],
      },
    ];
  return [];
}

/** Whether rights and tenant of an agent are those of the configuration, and need nothing of a caller. */
export function isFixed(tenantId: unknown, identity: AgentIdentity | undefined): boolean {
  const byClaim = typeof tenantId === 'object' && tenantId !== null;
  const own =
    typeof identity === 'object' && identity.kind !== 'claimedUser' && identity.kind !== 'impersonate';
  return !byClaim && (identity === undefined || own);
}
