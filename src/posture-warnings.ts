import type { Logger } from '@nestjs/common';
import type { LoadedConfig } from './config/load-config.js';

/** What an operator should know at every start: who reads with the master key, who may write without being asked. */
export function warnOfPostures({ agents, identities, policy }: LoadedConfig, logger: Logger): void {
  const names = [...identities]
    .filter(([, identity]) => identity !== 'callerSession' && identity.kind === 'master')
    .map(([name]) => name);
  if (!policy.switches.suppressMasterKeyWarning && names.length > 0) {
    logger.warn(
      `[SECURITY] agents with master posture (${names.join(', ')}): row ACLs and class-level permissions are not enforced for them; ` +
        'the class policy is all that limits what they read',
    );
  }
  const writers = [...agents.values()]
    .filter((shape) => shape.permissions !== 'readonly')
    .map((shape) => shape.name);
  if (writers.length > 0 && policy.switches.requireApprovalFor.length === 0) {
    logger.warn(
      `[SECURITY] agents above readonly (${writers.join(', ')}) are served without any approval tier (requireApprovalFor)`,
    );
  }
}
