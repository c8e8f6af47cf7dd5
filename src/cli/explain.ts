import { loadWithPlugins } from '#instance';
import { describeRehearsal } from './describe-rehearsal.js';
import { withConfig } from './named-config.js';
import { agentNamed, openRehearsal } from './rehearsal-room.js';
import { UsageError } from './usage-error.js';

export interface ExplainOptions {
  readonly as: string;
  readonly user?: string;
  readonly config?: string;
  readonly json?: boolean;
}

/** Tells what would come of a call, gate by gate, and sends nothing. Exit code 1 where it would be refused. */
export async function runExplain(tool: string, text: string, options: ExplainOptions): Promise<void> {
  const args = readArguments(text);
  const env = withConfig(options.config);
  const room = await openRehearsal(
    await loadWithPlugins(env),
    env,
    options.user === undefined ? {} : { user: options.user },
  );
  try {
    const rehearsal = await room.rehearser.rehearse(agentNamed(options.as, room), tool, args);
    const told = options.json ? `${JSON.stringify(rehearsal, null, 2)}\n` : describeRehearsal(rehearsal);
    process.stdout.write(told);
    if (!rehearsal.allowed) process.exitCode = 1;
  } finally {
    await room.close();
  }
}

function readArguments(text: string): unknown {
  let args: unknown;
  try {
    args = JSON.parse(text);
  } catch {
    throw new UsageError('the arguments are not JSON');
  }
  if (args === null || typeof args !== 'object' || Array.isArray(args))
    throw new UsageError('the arguments must be a JSON object');
  return args;
}
