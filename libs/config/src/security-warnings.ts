import type { Logger } from '@nestjs/common';
import { HIDDEN_BY_DEFAULT, isExposedToEveryTenant, type Policy } from '#policy';
import { describeEnd, findEndingKeys } from './list-keys.js';
import type { LoadedConfig } from './load-config.js';

type SecurityWarning = 'master' | 'writers' | 'unhidden' | 'untenanted' | 'ungoverned' | 'ending';

/** A process logs each of them once, however many instances run in it. */
const LOGGED_WARNINGS = new Set<SecurityWarning>();

type Configured = Pick<LoadedConfig, 'agents' | 'identities' | 'policy'> & {
  readonly config: Pick<LoadedConfig['config'], 'ungoverned' | 'auth'>;
};

/**
 * What an operator should know at a start: who reads with the master key, who may write without being asked, which classes
 * of the server were opened, what goes past the policy, which keys end. It goes by what was configured: a session that cannot be resolved is not the master key.
 */
export function logSecurityWarnings(
  { config, agents, identities, policy }: Configured,
  logger: Pick<Logger, 'warn'>,
  logged: Set<SecurityWarning> = LOGGED_WARNINGS,
): void {
  const warn = (kind: SecurityWarning, names: readonly string[], text: (names: string) => string) => {
    if (names.length === 0 || logged.has(kind)) return;
    logged.add(kind);
    logger.warn(`[SECURITY] ${text(names.join(', '))}`);
  };
  const masters = agentsWithMasterPosture(identities);
  if (!policy.switches.suppressMasterKeyWarning && !hasPlainClassesAlone(policy)) {
    warn(
      'master',
      masters,
      (names) =>
        `agents with master posture (${names}): row ACLs and class-level permissions are not enforced for them; ` +
        'the class policy is all that limits what they read',
    );
  }
  const writers = [...agents.values()]
    .filter((definition) => definition.permissions !== 'readonly')
    .map((definition) => definition.name);
  if (policy.switches.requireApprovalFor.length === 0) {
    warn(
      'writers',
      writers,
      (names) => `agents above readonly (${names}) are served without any approval tier (requireApprovalFor)`,
    );
  }
  const unhidden = [...policy.classes.values()]
    .filter(({ className, hiding }) => HIDDEN_BY_DEFAULT.has(className) && hiding === 'no')
    .map(({ className }) => className);
  const untenanted = [...policy.classes.values()]
    .filter((one) => isExposedToEveryTenant(one, policy))
    .map(({ className }) => className);
  warn(
    'untenanted',
    untenanted,
    (names) => `every tenant reads these classes, though other classes have a tenantScope: ${names}`,
  );
  warn(
    'ungoverned',
    config.ungoverned,
    (names) => `code of this deployment reads and changes rows past the policy, under these names: ${names}`,
  );
  warn('ending', findEndingKeys(config.auth).map(describeEnd), (keys) => keys);
  warn('unhidden', unhidden, (names) => `classes that are hidden by default are shown to agents: ${names}`);
}

/** Names of the agents that read with the master key. */
export function agentsWithMasterPosture(identities: LoadedConfig['identities']): string[] {
  return [...identities]
    .filter(([, identity]) => identity !== 'callerSession' && identity.kind === 'master')
    .map(([name]) => name);
}

/** Rows of plain classes have no ACL, and their classes no permissions: there is nothing that an agent could bypass. */
export function hasPlainClassesAlone({ classes, switches }: Policy): boolean {
  const declared = [...classes.values()];
  return (
    switches.unlistedClasses === 'refuse' &&
    declared.length > 0 &&
    declared.every(({ plain }) => plain !== null)
  );
}
