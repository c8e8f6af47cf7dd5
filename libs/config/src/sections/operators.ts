import type { ConfigIssue } from '../config-error.js';
import type { ParleyConfig } from '../config.js';
import { noAgent } from '../schema/near-key.js';
import {
  IsIn,
  IsNumber,
  IsPositive,
  IsString,
  IsTexts,
  Matches,
  Max,
  MinLength,
  Nested,
  Nullable,
  Option,
  type Plain,
} from '../schema/option.js';
import { isSafeAddress } from './server.js';

/** Where new cases are announced. */
export class ApprovalWebhookConfig {
  @Option('where new cases are sent', { required: true })
  @IsString()
  @Matches(/^https?:\/\//)
  readonly url!: string;

  @Option('the secret of the signature', { required: true })
  @IsString()
  @MinLength(16)
  readonly secret!: string;
}

/** The section `approvals`: who decides when the policy wants approval (docs/guide/approvals.md). */
export class ApprovalsSection {
  @Option(
    '`client`: the person at the calling client. `desk`: another person, over the approval routes. `both`: first the client, then the other person',
  )
  @IsIn(['client', 'desk', 'both'])
  readonly mode: 'client' | 'desk' | 'both' = 'client';

  @Option('names of the agents that may decide over the approval routes')
  @IsTexts()
  readonly approvers: readonly string[] = [];

  @Option(
    '`{ url, secret }`: receives every new case. https, or an address of this machine. Any other name must not resolve to this machine: [names](threat-model.md#names-that-lead-elsewhere)',
  )
  @Nested(ApprovalWebhookConfig)
  @Nullable()
  readonly webhook: Plain<ApprovalWebhookConfig> | null = null;

  @Option('seconds that a case waits for another person, and that the approval can be used')
  @IsNumber()
  @IsPositive()
  @Max(604_800)
  readonly expiry: number = 300;
}

/** The section `console`: the operators' page (docs/operations/console.md). */
export class ConsoleSection {
  @Option(
    'names of the agents that may open it; null: `/console` is 404. An agent that needs no credential stops the start',
  )
  @IsTexts()
  @Nullable()
  readonly operators: readonly string[] | null = null;
}

/** An approval desk without approvers, and webhooks that would show its cases to others. */
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

/** Operators that do not exist, or that sign in without a credential. */
export function consoleErrors({
  console: { operators },
  agents,
  auth,
  server,
}: Pick<ParleyConfig, 'console' | 'agents' | 'auth' | 'server'>): ConfigIssue[] {
  if (operators === null) return [];
  const path = 'console.operators';
  const errors = operators.flatMap((name): ConfigIssue[] => {
    if (!Object.hasOwn(agents, name)) return [{ path, ...noAgent(name, agents) }];
    const anonymous = auth.some((rule) => 'anonymous' in rule && rule.agent === name);
    return anonymous
      ? [{ path, message: `'${name}' is reached without a credential: an operator signs in` }]
      : [];
  });
  if (/^\/console(\/|$)/.test(server.path))
    errors.push({ path: 'server.path', message: 'is where the console is served' });
  return errors;
}
