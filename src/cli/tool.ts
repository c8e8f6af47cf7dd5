import { isJsonObject } from '#dispatcher';
import { loadWithPlugins } from '#instance';
import { withConfig } from './named-config.js';
import { openAgent } from './open-agent.js';
import { jsonText } from './terminal/json-text.js';
import { PersonAtTerminal } from './terminal/person-at-terminal.js';
import { Terminal } from './terminal/terminal.js';
import { toolEnvelope } from './tool-envelope.js';
import { UsageError } from './usage-error.js';

export interface ToolOptions {
  readonly agent?: string;
  readonly config?: string;
}

const INTERRUPTED = 130;

/**
 * Calls one tool and writes what came of it as JSON to stdout; questions and progress go to stderr. The exit code is 0 for a
 * result, 1 for a refusal or failure, 130 after Ctrl-C.
 * @throws UsageError
 */
export async function runTool(
  name: string | undefined,
  json: string | undefined,
  options: ToolOptions,
): Promise<void> {
  if (name === undefined) throw new UsageError('usage: parley tool NAME [JSON] [--agent NAME]');
  const args = readArguments(json ?? '{}');
  const env = withConfig(options.config);
  const loaded = await loadWithPlugins(env);
  // stdout is the result's.
  const terminal = process.stdin.isTTY ? new Terminal({ output: process.stderr }) : null;
  const person = terminal && new PersonAtTerminal(terminal);
  const call = new AbortController();
  const interrupt = () => {
    call.abort(new Error('interrupted'));
    person?.giveUp();
  };
  if (terminal) terminal.onCtrlC(interrupt);
  else process.once('SIGINT', interrupt);
  try {
    const opened = await openAgent(loaded, env, { agent: options.agent, ...(person && { person }) });
    try {
      const reply = await opened.tools.call(name, args, {
        signal: call.signal,
        onProgress: ({ progress, total = '?', message = '' }) =>
          terminal?.status(`${name} ${progress}/${total} ${message}`),
      });
      terminal?.write('');
      process.stdout.write(`${jsonText(toolEnvelope(reply))}\n`);
      process.exitCode = reply.failed ? 1 : 0;
    } finally {
      await opened.close();
    }
  } catch (error) {
    if (!call.signal.aborted) throw error;
    process.stderr.write('interrupted\n');
    process.exitCode = INTERRUPTED;
  } finally {
    terminal?.close();
  }
}

function readArguments(text: string) {
  let args: unknown;
  try {
    args = JSON.parse(text);
  } catch {
    throw new UsageError('the arguments are not JSON');
  }
  if (!isJsonObject(args)) throw new UsageError('the arguments must be a JSON object');
  return args;
}
