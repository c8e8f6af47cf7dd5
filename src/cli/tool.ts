import { isJsonObject, type JsonObject, member } from '#core';
import { loadWithPlugins } from '#parley/instance';
import type { ToolReply } from '#chat';
import { readObject, UsageError, withConfig } from './command-options.js';
import { openAgent } from './open-agent.js';
import { PersonAtTerminal } from './terminal/person-at-terminal.js';
import { Terminal } from './terminal/terminal.js';
import { jsonText, textTable } from './text-output.js';

interface ToolCommandOptions {
  readonly agent?: string;
  readonly config?: string;
  readonly list?: boolean;
}

const EXIT_INTERRUPTED = 130;

/**
 * Calls one tool and writes its outcome as JSON to stdout; client requests and progress go to stderr. The exit code is
 * 0 for a result, 1 for a refusal or failure, 130 after Ctrl-C.
 * @throws UsageError
 */
export async function runTool(
  name: string | undefined,
  json: string | undefined,
  options: ToolCommandOptions,
): Promise<void> {
  if (options.list) return listTools(options);
  if (name === undefined)
    throw new UsageError('usage: parley tool NAME [JSON] [--agent NAME], or parley tool --list');
  const args = readObject(json ?? '{}', 'the arguments');
  if (name === 'export_data' && args['delivery'] === 'resource')
    throw new UsageError(
      'delivery "resource" is a link that ends with this command: use "inline", with a row_cap',
    );
  const env = withConfig(options.config);
  const loaded = await loadWithPlugins(env);
  // stdout contains only the result.
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
      const envelope = toolEnvelope(reply);
      process.stdout.write(jsonText(envelope));
      if (envelope['protocol_error'] !== undefined)
        process.stderr.write('parley tool --list lists the tools that the agent may call\n');
      process.exitCode = reply.failed ? 1 : 0;
    } finally {
      await opened.close();
    }
  } catch (error) {
    if (!call.signal.aborted) throw error;
    process.stderr.write('interrupted\n');
    process.exitCode = EXIT_INTERRUPTED;
  } finally {
    terminal?.close();
  }
}

/** The tools that the agent may call, with the first line of what each does. */
async function listTools({ config, agent }: ToolCommandOptions): Promise<void> {
  const env = withConfig(config);
  const opened = await openAgent(await loadWithPlugins(env), env, { agent });
  try {
    const tools = await opened.tools.list(new AbortController().signal);
    const rows = tools.map(({ name, description }) => [name, firstSentence(description)]);
    process.stdout.write(textTable(['TOOL', 'DOES'], rows));
  } finally {
    await opened.close();
  }
}

const firstSentence = (text: string) => text.split(/(?<=\.)\s/, 1)[0] ?? '';

/** The result of a tool for scripts: `success` with `data`, or `error` and `error_code`. */
export function toolEnvelope({ text, failed, result }: ToolReply): JsonObject {
  if (!failed) return { success: true, data: member(result, 'structuredContent') ?? parseText(text) };
  const output = parseText(text);
  // Refusals with a body contain the same as JSON.
  if (isJsonObject(output) && output['success'] === false) return output;
  const meta = member(result, '_meta');
  const code = member(meta, 'parse.error_code');
  const retryAfter = member(meta, 'parse.retry_after');
  const details = member(meta, 'parse.details');
  const protocol = member(member(result, 'error'), 'code');
  return {
    success: false,
    error: text,
    ...(code !== undefined && { error_code: code }),
    ...(retryAfter !== undefined && { retry_after: retryAfter }),
    ...(details !== undefined && { details }),
    ...(protocol !== undefined && { protocol_error: protocol }),
    ...(member(result, 'cancelled') === true && { cancelled: true }),
  };
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
