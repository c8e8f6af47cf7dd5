import { loadWithPlugins } from '#composition';
import { describeRehearsal } from './describe-rehearsal.js';
import { withConfig } from './named-config.js';
import { agentNamed, openRehearsal } from './rehearsal-room.js';

export interface ExplainOptions {
  readonly as: string;
  readonly user?: string;
  readonly config?: string;
  readonly json?: boolean;
}

/** Tells what would come of a call, gate by gate, and sends nothing. Refused or allowed, an answer is a success. */
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
  } finally {
    await room.close();
  }
}

function readArguments(text: string): unknown {
  let args: unknown;
  try {
    args = JSON.parse(text);
  } catch {
    throw new Error('the arguments are not JSON');
  }
  if (args === null || typeof args !== 'object' || Array.isArray(args))
    throw new Error('the arguments must be a JSON object');
  return args;
}
