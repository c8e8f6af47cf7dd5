import {
  agentsWithMasterPosture,
  type AuthRuleConfig,
  describeEnd,
  findEndingKeys,
  findSecurityWarnings,
  isLoopbackHost,
  type LoadedConfig,
} from '#config';
import { type EnvironmentGates } from '#policy';
import { fail, type Finding, ok, warn } from './finding.js';

/** A shorter key can be found by brute force. */
const SHORTEST_KEY = 24;
/** `aaaa…` is found as easily. */
const FEWEST_CHARACTERS = 8;

/** Checks the listening address and the credentials of callers. */
export function checkListening({ config }: Pick<LoadedConfig, 'config'>): Finding[] {
  const { server, auth } = config;
  const loopback = isLoopbackHost(server.host);
  const anonymous = auth.filter((rule) => 'anonymous' in rule).map(({ agent }) => agent);
  const where = `${server.host}:${server.port}${server.path}`;
  const findings: Finding[] = [];
  if (anonymous.length > 0 && loopback)
    findings.push(
      warn(
        'listening.anonymous',
        `${where}: everyone on this machine is '${anonymous.join("', '")}'`,
        'set MCP_API_KEY, or give auth rules without anonymous, where others use this machine',
      ),
    );
  else findings.push(ok('listening', `${where}, with authentication`));
  if (!loopback && server.preAuthRateLimit === null)
    findings.push(
      warn(
        'listening.pre_auth_limit',
        'nothing limits how often an address may try credentials',
        'set server.preAuthRateLimit, or limit requests at the load balancer',
      ),
    );
  if (!loopback && server.allowedOrigins.length === 0)
    findings.push(
      warn(
        'listening.origins',
        'pages of every origin may ask, with credentials of their own',
        'list the origins of browser clients in server.allowedOrigins',
      ),
    );
  return [...findings, ...checkKeys(auth)];
}

function checkKeys(auth: readonly AuthRuleConfig[]): Finding[] {
  const findings: Finding[] = findEndingKeys(auth).map((key) =>
    warn('auth.expires', describeEnd(key), 'add a rule with a new key beside it, and remove this one'),
  );
  const holders = new Map<string, string>();
  for (const rule of auth) {
    const key: unknown = 'apiKey' in rule ? rule.apiKey : undefined;
    if (typeof key !== 'string') continue;
    const holder = holders.get(key);
    if (holder !== undefined)
      findings.push(
        warn(
          'auth.same_key',
          `'${holder}' and '${rule.agent}' have the same key: it always means '${holder}'`,
          'give each agent a key of its own',
        ),
      );
    else holders.set(key, rule.agent);
    if (key.length < SHORTEST_KEY || new Set(key).size < FEWEST_CHARACTERS)
      findings.push(
        warn(
          'auth.weak_key',
          `the key of '${rule.agent}' can be found by trying`,
          'use 32 random bytes, such as `openssl rand -base64 32`',
        ),
      );
  }
  return findings;
}

/** Checks the open environment gates and what agents can do with them. */
export function checkAgents(loaded: LoadedConfig, gates: EnvironmentGates): Finding[] {
  const open = Object.entries(gates).flatMap(([name, isOpen]) => (isOpen ? [name] : []));
  const { requireApprovalFor, suppressMasterKeyWarning, unlistedClasses } = loaded.policy.switches;
  const findings: Finding[] = [
    open.length === 0
      ? ok('gates', 'none is open: nothing can be written by raw tools')
      : requireApprovalFor.length === 0
        ? warn(
            'gates',
            `open without any approval: ${open.join(', ')}`,
            'name the tiers that a person must approve in policy.requireApprovalFor, or close the gates',
          )
        : ok('gates', `open, with approval for ${requireApprovalFor.join(', ')}: ${open.join(', ')}`),
    ok(
      'agents',
      [...loaded.agents.values()]
        .map((definition) => `${definition.name} (${definition.permissions})`)
        .join(', '),
    ),
  ];
  for (const { kind, message } of findSecurityWarnings(loaded))
    // Keys are looked at with the other rules.
    if (kind !== 'ending') findings.push(warn('agents.posture', message, POSTURE_REMEDIES[kind]));
  const masters = agentsWithMasterPosture(loaded.identities);
  if (unlistedClasses === 'allow' && masters.length > 0)
    findings.push(
      fail(
        'agents.unlisted',
        `agents with master posture (${masters.join(', ')}) read every class of the database that nothing hides: policy.unlistedClasses is allow`,
        'list the classes under policy.classes (parley init writes a first list) and write unlistedClasses: refuse, or give the agents an identity',
      ),
    );
  if (suppressMasterKeyWarning)
    findings.push(ok('agents.posture', 'suppressMasterKeyWarning is on: master posture is not told of'));
  return findings;
}

/** Whom Cloud Code that decides what users read (`beforeFind`, `afterFind`) does not bind. */
export function checkReadHooks({ config, policy }: Pick<LoadedConfig, 'config' | 'policy'>): Finding[] {
  const { serverUrl, readHooks } = config.parse;
  if (serverUrl === null) return [];
  const listSaid = (value: string) =>
    [...policy.classes.values()]
      .filter((entry) => entry.readHooks === value)
      .map(({ className }) => className);
  const assumed = Object.entries(config.agents)
    .filter(([, { identity }]) => typeof identity === 'object' && ('user' in identity || 'role' in identity))
    .map(([name]) => name);
  const [none, possible] = [listSaid('none'), listSaid('possible')];
  const except = (names: readonly string[]) => (names.length === 0 ? '' : `, except ${names.join(', ')}`);
  return [
    readHooks === 'none'
      ? warn(
          'parse.read_hooks',
          `sessions read every class in MongoDB as well, where no beforeFind and no afterFind runs${except(possible)}`,
          'write readHooks: possible beside each class where Cloud Code decides what users read, or leave parse.readHooks out',
        )
      : ok('parse.read_hooks', `sessions read through Parse Server alone${except(none)}`),
    ...(assumed.length > 0 && readHooks !== 'none'
      ? [
          warn(
            'parse.read_hooks',
            `no beforeFind and no afterFind of Cloud Code binds ${assumed.join(', ')}: an assumed user or role reads in MongoDB`,
            'give them sessions, or limit these agents by the policy where Cloud Code decides what users read',
          ),
        ]
      : []),
  ];
}

const POSTURE_REMEDIES = {
  master:
    'give them an identity (session, user or role), or set policy.suppressMasterKeyWarning once that is meant',
  writers: 'set policy.requireApprovalFor',
  untenanted: 'give these classes a tenantScope, or hide them',
  ungoverned: 'review the code that uses them, or take names out of ungoverned',
  unhidden: 'hide them again, or list the fields that agents may read',
};
