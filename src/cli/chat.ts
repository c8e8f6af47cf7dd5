import { readFile, writeFile } from 'node:fs/promises';
import { oneLine, terminalText } from '#audit';
import { loadWithPlugins } from '#parley/instance';
import { type Answer, callLine, type Conversation } from '#chat';
import { withConfig } from './command-options.js';
import { openAgent, type OpenAgent, prepareConversation } from './open-agent.js';
import { PersonAtTerminal } from './terminal/person-at-terminal.js';
import { Terminal, TextStream } from './terminal/terminal.js';

interface ChatOptions {
  readonly agent?: string;
  readonly config?: string;
}

/**
 * Runs the conversation until the user leaves.
 * @throws ModelSettingsError when no model can be used, before anything is opened
 */
export async function runChat({ agent, config }: ChatOptions): Promise<void> {
  const env = withConfig(config);
  const loaded = await loadWithPlugins(env);
  const converse = prepareConversation(loaded.config, agent, env, (line) =>
    process.stderr.write(`${line}\n`),
  );
  const terminal = new Terminal();
  const person = new PersonAtTerminal(terminal);
  try {
    const opened = await openAgent(loaded, env, { agent, ...(terminal.isPerson && { person }) });
    try {
      const trace = env['MCP_CHAT_TRACE'] === 'true';
      await new ChatLoop({ terminal, person, agent: opened, conversation: converse(opened), trace }).run();
    } finally {
      await opened.close();
    }
  } finally {
    terminal.close();
  }
}

interface ChatParts {
  readonly terminal: Terminal;
  readonly person: PersonAtTerminal;
  readonly agent: OpenAgent;
  readonly conversation: Conversation;
  /** Whether calls and costs are shown from the start. */
  readonly trace: boolean;
}

const PROMPT = '> ';
const CONTINUATION_PROMPT = '… ';
const BLOCK = '"""';
const LEAVE = new Set(['/exit', '/quit', 'exit', 'quit']);

/** Reads questions and commands until the input ends. */
class ChatLoop {
  private readonly commands: ChatCommands;

  constructor(private readonly dependencies: ChatParts) {
    this.commands = new ChatCommands(dependencies);
  }

  async run(): Promise<void> {
    const { terminal } = this.dependencies;
    this.banner();
    for (;;) {
      const entered = await this.question();
      if (entered === null || LEAVE.has(entered)) break;
      if (entered !== '') await this.interruptibly((signal) => this.handle(entered, signal));
    }
    terminal.line('bye');
  }

  private banner(): void {
    const { terminal, agent, conversation } = this.dependencies;
    const { provider, model } = conversation.model;
    terminal.line(terminal.paint('bold', `Parley chat — ${oneLine(`${provider} / ${model}`)}`));
    terminal.line(
      `Agent: ${agent.name} (${agent.permissions}) | Trace: ${this.commands.trace ? 'on' : 'off'}`,
    );
    terminal.line('Type your question. /help lists the commands.');
  }

  /** One or more lines: a line that ends with a backslash continues, and so does a block between two lines of `"""`. */
  private async question(): Promise<string | null> {
    const { terminal } = this.dependencies;
    const lines: string[] = [];
    let inBlock = false;
    for (;;) {
      const entered = await terminal.next(lines.length === 0 && !inBlock ? PROMPT : CONTINUATION_PROMPT);
      if (entered.kind === 'end') return lines.length > 0 ? lines.join('\n').trim() : null;
      if (entered.kind === 'interrupted') {
        terminal.line('[interrupted]');
        return '';
      }
      const { text } = entered;
      if (text.trim() === BLOCK) {
        if (inBlock) return lines.join('\n').trim();
        inBlock = true;
      } else if (!inBlock && text.endsWith('\\')) lines.push(text.slice(0, -1));
      else {
        lines.push(text);
        if (!inBlock) return lines.join('\n').trim();
      }
    }
  }

  private async handle(entered: string, signal: AbortSignal): Promise<void> {
    if (entered.startsWith('/')) return this.commands.run(entered, signal);
    const { terminal, conversation } = this.dependencies;
    const text = new TextStream((shown) => terminal.write(shown));
    let calls = 0;
    terminal.status('…');
    const answer = await conversation
      .reply(entered, {
        signal,
        onText: (piece) => text.take(piece),
        onModelTurn: () => text.end(),
        onToolCall: (call) => {
          calls += 1;
          if (this.commands.trace) terminal.line(terminal.paint('dim', callLine(call, calls)));
          terminal.status(`  ${call.name} …`);
        },
        onToolResult: ({ failed, result }) => {
          if (this.commands.trace && failed)
            terminal.line(terminal.paint('yellow', `     refused: ${result.split('\n', 1)[0] ?? ''}`));
        },
        onProgress: (name, { progress, total, message }) =>
          terminal.status(`  ${name} ${progress}${total === undefined ? '' : `/${total}`} ${message ?? ''}`),
        onRetry: (seconds, why) => terminal.status(`  again in ${Math.ceil(seconds)} s: ${why}`),
      })
      .finally(() => text.end());
    this.afterwards(answer);
  }

  private afterwards({ error, usage }: Answer): void {
    const { terminal } = this.dependencies;
    if (error !== null) terminal.line(terminal.paint('yellow', `[${error}]`));
    if (this.commands.trace) terminal.line(terminal.paint('dim', `  ${usage.toString()}`));
  }

  /** Ctrl-C cancels only the current work. */
  private async interruptibly(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { terminal, person } = this.dependencies;
    const turn = new AbortController();
    terminal.onCtrlC(() => {
      turn.abort(new Error('interrupted'));
      person.giveUp();
    });
    try {
      await work(turn.signal);
    } catch (error) {
      if (turn.signal.aborted) terminal.line('[interrupted]');
      else terminal.line(terminal.paint('red', formatError(error)));
    } finally {
      terminal.onCtrlC(null);
    }
  }
}

function formatError(error: unknown): string {
  return error instanceof Error
    ? `[error] ${error.name}: ${terminalText(oneLine(error.message))}`
    : '[error] something that is no error was thrown';
}

interface ChatCommand {
  readonly does: string;
  readonly run: (rest: string, signal: AbortSignal) => void | Promise<void>;
}

const SHOWN_OF_HISTORY = 120;
const SHOWN_OF_SUMMARY = 200;

/** Commands that begin with a slash. */
class ChatCommands {
  trace: boolean;
  private readonly commands: ReadonlyMap<string, ChatCommand>;

  constructor(private readonly dependencies: ChatParts) {
    this.trace = dependencies.trace;
    this.commands = new Map<string, ChatCommand>([
      ['/help', { does: 'this list', run: () => this.help() }],
      ['/reset', { does: 'forget what was said', run: () => this.reset() }],
      [
        '/compact',
        {
          does: 'put a summary in the place of what was said (asks the model)',
          run: (_, signal) => this.compact(signal),
        },
      ],
      ['/tools', { does: 'the tools of this agent', run: (_, signal) => this.tools(signal) }],
      ['/trace', { does: 'show calls and costs, or no longer', run: () => this.toggleTrace() }],
      ['/cost', { does: 'tokens and dollars so far', run: () => this.cost() }],
      ['/history', { does: 'what was said', run: () => this.history() }],
      ['/export', { does: 'FILE: write what was said to a new file', run: (file) => this.export(file) }],
      ['/import', { does: 'FILE: go on with what such a file holds', run: (file) => this.import(file) }],
    ]);
  }

  async run(entered: string, signal: AbortSignal): Promise<void> {
    const [, name = '', rest = ''] = /^(\S+)\s*([^]*)$/.exec(entered) ?? [];
    const command = this.commands.get(name);
    if (command) await command.run(rest.trim(), signal);
    else this.line(`no command ${oneLine(name)}; /help lists them`);
  }

  private help(): void {
    for (const [name, { does }] of this.commands) this.line(`${name.padEnd(9)} ${does}`);
    this.line('/exit     leave (also /quit, Ctrl-D); Ctrl-C ends what is being done');
    this.line('A line that ends with \\ goes on; """ begins and ends several lines.');
  }

  private reset(): void {
    this.dependencies.conversation.reset();
    this.line('[conversation cleared]');
  }

  private async compact(signal: AbortSignal): Promise<void> {
    const { conversation } = this.dependencies;
    const summary = await conversation.compact(signal);
    if (summary === '') return this.line('[nothing to compact]');
    this.line(`[compacted with ${conversation.lastCallUsage.total} tokens]`);
    this.line(oneLine(takeBeginning(summary, SHOWN_OF_SUMMARY)));
  }

  private async tools(signal: AbortSignal): Promise<void> {
    const listed = await this.dependencies.agent.tools.list(signal);
    for (const name of listed.map((tool) => tool.name).sort()) this.line(oneLine(name));
  }

  private toggleTrace(): void {
    this.trace = !this.trace;
    this.line(`trace: ${this.trace ? 'on' : 'off'}`);
  }

  private cost(): void {
    const { usage, lastCallUsage } = this.dependencies.conversation;
    this.line(`session: ${usage.toString(4)}`);
    this.line(`last:    ${lastCallUsage.toString(6)}`);
  }

  private history(): void {
    const { history } = this.dependencies.conversation;
    if (history.length === 0) this.line('[nothing was said]');
    for (const [index, { role, content }] of history.entries())
      this.line(`${index + 1}. ${role}: ${oneLine(takeBeginning(content, SHOWN_OF_HISTORY))}`);
  }

  private async export(file: string): Promise<void> {
    if (file === '') return this.line('/export FILE');
    // Readable by its owner alone, and never over an existing file.
    await writeFile(file, this.dependencies.conversation.export(), { flag: 'wx', mode: 0o600 });
    this.line(`[written to ${oneLine(file)}]`);
  }

  private async import(file: string): Promise<void> {
    if (file === '') return this.line('/import FILE');
    const { conversation } = this.dependencies;
    const imported = conversation.import(await readFile(file, 'utf8'));
    this.line(
      imported ? `[${conversation.history.length} messages read]` : '[not read: the file is not JSON]',
    );
  }

  private line(text: string): void {
    this.dependencies.terminal.line(text);
  }
}

const takeBeginning = (text: string, most: number) => Array.from(text).slice(0, most).join('');
