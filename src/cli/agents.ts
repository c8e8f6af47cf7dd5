import { UsageError } from './command-options.js';
import { ServiceClient, type ServiceOptions } from './service-client.js';
import { jsonText, textTable } from './text-output.js';

interface SuspensionOptions extends ServiceOptions {
  readonly reason?: string;
}

interface AgentState {
  readonly name: string;
  readonly suspended: { readonly since: string; readonly by: string; readonly reason: string } | null;
}

const PATH = '/console/api/suspensions';
const THIS_PROCESS = 'Without Redis this counts for the process that answered alone, until it ends.\n';

/** The agents of a service, and which are suspended. */
export async function listAgents(options: ServiceOptions): Promise<void> {
  const { agents, scope } = await new ServiceClient(options).call(PATH);
  if (!Array.isArray(agents)) throw new UsageError('--url: what answers there is no Parley service');
  if (options.json) {
    process.stdout.write(jsonText({ scope, agents }));
    return;
  }
  const rows = (agents as readonly AgentState[]).map(({ name, suspended }) =>
    suspended
      ? [name, 'suspended', suspended.since, suspended.by, suspended.reason]
      : [name, 'active', '-', '-', '-'],
  );
  process.stdout.write(textTable(['AGENT', 'STATE', 'SINCE', 'BY', 'REASON'], rows));
  if (scope === 'process') process.stderr.write(THIS_PROCESS);
}

/** Suspends an agent at once, or resumes it. @throws UsageError without the reason of a suspension */
export const changeAgent =
  (action: 'suspend' | 'resume') =>
  async (name: string, { reason, ...options }: SuspensionOptions): Promise<void> => {
    if (action === 'suspend' && (reason ?? '').trim() === '')
      throw new UsageError('--reason is needed: the audit record says why');
    const body = { action, ...(reason !== undefined && { reason }) };
    const { scope, ...agent } = await new ServiceClient(options).call(
      `${PATH}/${encodeURIComponent(name)}`,
      body,
    );
    process.stdout.write(jsonText(agent));
    if (scope === 'process') process.stderr.write(THIS_PROCESS);
  };
