import { start } from 'node:repl';
import { inspect } from 'node:util';
import { oneLine, terminalText } from '#audit';
import { Answer, ModelSettingsError } from '#llm';
import { loadWithPlugins } from '#instance';
import { consoleHelpers } from './console-helpers.js';
import { withConfig } from './named-config.js';
import { openAgent } from './open-agent.js';
import { type OpenConversation, preparedConversation } from './open-conversation.js';
import { AwaitedEvaluations } from './terminal/awaited-evaluations.js';
import { PersonAtTerminal } from './terminal/person-at-terminal.js';
import { PromptTerminal } from './terminal/prompt-terminal.js';

export interface ConsoleOptions {
  readonly agent?: string;
  readonly config?: string;
}

/** A JavaScript prompt with helpers around one agent. What it evaluates is code of whoever sits there. */
export async function runConsole({ agent, config }: ConsoleOptions): Promise<void> {
  const env = withConfig(config);
  const print = (line: string) => process.stdout.write(`${line}\n`);
  const loaded = await loadWithPlugins(env);
  let converse: OpenConversation | null = null;
  let without = '';
  try {
    converse = preparedConversation(loaded.config, agent, env, (line) => process.stderr.write(`${line}\n`));
  } catch (error) {
    if (!(error instanceof ModelSettingsError)) throw error;
    without = `mcp is not there: ${oneLine(error.message)}`;
  }
  const isPerson = process.stdin.isTTY && process.stdout.isTTY;
  const terminal = isPerson ? new PromptTerminal(process.stdin, process.stdout) : null;
  const person = terminal && new PersonAtTerminal(terminal);
  const opened = await openAgent(loaded, env, { agent, ...(person && { person }) });
  try {
    const conversation = converse?.(opened) ?? null;
    print(`Parley console — agent ${opened.name} (${opened.permissions})`);
    print('agent tools schemas prompts t(name, args) q(class, options) count(class, options) schema(class)');
    print(`dispatch(method, params) render_prompt(name, args)${conversation ? ' mcp.ask(question)' : ''}`);
    if (without !== '') print(without);
    const { functions, values } = consoleHelpers({ agent: opened, conversation, print });
    const evaluations = new AwaitedEvaluations();
    const server = start({
      prompt: isPerson ? 'parley> ' : '',
      input: isPerson ? process.stdin : evaluations.paced(process.stdin),
      output: process.stdout,
      terminal: isPerson,
      eval: evaluations.evaluate,
      useColors: false,
      writer: shown,
    });
    terminal?.attach(server);
    // Before the prompt's own answer to Ctrl-C, which goes on to ask for code.
    server.prependListener('SIGINT', () => person?.giveUp());
    Object.assign(server.context, functions);
    for (const [name, get] of Object.entries(values))
      Object.defineProperty(server.context, name, { get, configurable: true, enumerable: true });
    await new Promise<void>((resolve) => server.once('exit', resolve));
    await evaluations.settled();
  } finally {
    await opened.close();
  }
}

/** Values as Node prints them, and answers as text; nothing in them drives the terminal. */
function shown(value: unknown): string {
  if (value instanceof Answer) return value.toString();
  return terminalText(inspect(value, { depth: 8, maxStringLength: 10_000 }));
}
