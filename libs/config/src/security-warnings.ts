import type { Logger } from '@nestjs/common';
import { HIDDEN_BY_DEFAULT, isExposedToEveryTenant, type Policy } from '#policy';
import { type ConfigIssue, describeIssue } from './config-error.js';
import { describeEnd, findEndingKeys } from './list-keys.js';
import type { LoadedConfig } from './load-config.js';

type Kind = 'master' | 'writers' | 'unhidden' | 'untenanted' | 'ungoverned' | 'ending';

/** What an operator should know of a configuration that can be served, with the option that decides it. */
export interface SecurityWarning extends ConfigIssue {
  readonly kind: Kind;
}

/** A process logs each of them once, however many instances run in it. */
const LOGGED_WARNINGS = new Set<Kind>();

type Configured = Pick<LoadedConfig, 'agents' | 'identities' | 'policy'> & {
  readonly config: Pick<LoadedConfig['config'], 'ungoverned' | 'auth'>;
  readonly locate?: (issues: readonly ConfigIssue[]) => readonly ConfigIssue[];
};

/**
 * Who reads with the master key, who may write without being asked, which classes of the server were opened, what goes
 * past the policy, which keys end. It goes by what was configured: a session that cannot be resolved is not the master key.
 */
export function findSecurityWarnings({
  config,
  agents,
  identities,
  policy,
}: Configured): readonly SecurityWarning[] {
  const found: SecurityWarning[] = [];
  /** @param within the option that holds an entry for each name */
  const warn = (kind: Kind, within: string, names: readonly string[], text: (names: string) => string) => {
    const [only, ...others] = names;
    if (only === undefined) return;
    const path = others.length === 0 && OPTIONS_BY_NAME.has(within) ? `${within}.${only}` : within;
    found.push({ kind, path, message: text(names.join(', ')) });
  };
  if (!policy.switches.suppressMasterKeyWarning && !hasPlainClassesAlone(policy)) {
    warn(
      'master',
      'agents',
      agentsWithMasterPosture(identities),
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
      'agents',
      writers,
      (names) =>
        `agents above readonly (${names}) are served without any approval tier (policy.requireApprovalFor)`,
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
    'policy.classes',
    untenanted,
    (names) => `every tenant reads these classes, though other classes have a tenantScope: ${names}`,
  );
  warn(
    'ungoverned',
    'ungoverned',
    config.ungoverned,
    (names) => `code of this deployment reads and changes rows past the policy, under these names: ${names}`,
  );
  warn('ending', 'auth', findEndingKeys(config.auth).map(describeEnd), (keys) => keys);
  warn(
    'unhidden',
    'policy.classes',
    unhidden,
    (names) => `classes that are hidden by default are shown to agents: ${names}`,
  );
  return found;
}

const OPTIONS_BY_NAME = new Set(['agents', 'policy.classes']);

/** Logs them at a start, with the place of each in the file. */
export function logSecurityWarnings(
  configured: Configured,
  logger: Pick<Logger, 'warn'>,
  logged: Set<Kind> = LOGGED_WARNINGS,
): void {
  const { locate = (issues: readonly ConfigIssue[]) => issues } = configured;
  for (const warning of findSecurityWarnings(configured)) {
    if (logged.has(warning.kind)) continue;
    logged.add(warning.kind);
    for (const issue of locate([warning])) logger.warn(`[SECURITY] ${describeIssue(issue)}`);
  }
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
