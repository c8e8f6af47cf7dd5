import { Refused, refusals, type Tier } from '#agent';
import { isRefusal } from '#policy';
import type { GovernedMethods } from '../governed-methods.js';
import { assertClassPermits, OPERATION_OF_TIER } from './class-permission.js';
import { presentResult } from './presented-result.js';
import type { RecordsParts } from './row-rules.js';

/** The governed side of running declared methods, for one call. */
export class ParleyMethods implements Omit<GovernedMethods, 'writes'> {
  constructor(private readonly parts: RecordsParts) {}

  async enter(className: unknown): Promise<string> {
    const { scope, agent } = this.parts;
    const access = scope.enter(agent, className, null);
    if (isRefusal(access)) throw new Refused(access);
    return access.className;
  }

  async permit(className: string, permission: Tier, type: 'instance' | 'class'): Promise<void> {
    const { agent } = this.parts;
    assertClassPermits(this.parts, className, OPERATION_OF_TIER[permission]);
    const assumed = agent.identity.kind === 'aclUser' || agent.identity.kind === 'aclRole';
    if (assumed && type === 'instance' && permission !== 'readonly') {
      throw new Refused(
        refusals.unenforceableScope(
          `A ${permission} method on an object of '${className}' cannot be held to the rights of an assumed user or role`,
        ),
      );
    }
  }

  async present(result: unknown): Promise<unknown> {
    return presentResult(result, this.parts.scope);
  }
}
