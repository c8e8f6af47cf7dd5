import { noAgent } from './errors/no-agent.js';
import { isLoopbackHost } from './start-gate.js';
import type { ParleyConfig } from './config.js';
import type { ConfigFault } from './config-faults.js';

/** What would make the desk a place where nobody decides, or tell strangers of it. */
export function approvalFaults({
  approvals,
  agents,
}: Pick<ParleyConfig, 'approvals' | 'agents'>): ConfigFault[] {
  const { mode, approvers, webhook } = approvals;
  const faults: ConfigFault[] = approvers
    .filter((name) => !Object.hasOwn(agents, name))
    .map((name) => ({ path: 'approvals.approvers', ...noAgent(name, agents) }));
  if (mode !== 'client' && approvers.length === 0)
    faults.push({
      path: 'approvals.approvers',
      message: `mode '${mode}' needs somebody who decides`,
      related: ['approvals.mode'],
    });
  if (webhook && mode === 'client')
    faults.push({
      path: 'approvals.webhook',
      message: "mode 'client' has nothing to announce",
      related: ['approvals.mode'],
    });
  if (webhook && !isSafeAddress(webhook.url))
    faults.push({
      path: 'approvals.webhook.url',
      message: 'must be an https address, or one of this machine',
    });
  return faults;
}

/** Where something private may be sent: encrypted, or within this machine. */
export function isSafeAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || isLoopbackHost(hostname.replace(/^\[|\]$/g, ''));
}
