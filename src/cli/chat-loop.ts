import { oneLine, terminalText } from '#audit';
import { type Answer, callLine, type Conversation } from '#llm';
import { ChatCommands } from './chat-commands.js';
import type { OpenAgent } from './open-agent.js';
import type { PersonAtTerminal } from './terminal/person-at-terminal.js';
import type { Terminal } from './terminal/terminal.js';
import { TextStream } from './terminal/text-stream.js';

export interface ChatParts {
  readonly terminal: Terminal;
  readonly person: PersonAtTerminal;
  readonly agent: OpenAgent;
  readonly conversation: Conversation;
  /** Whether calls and costs are shown from the start. */
  readonly trace: boolean;
}

const PROMPT = '> ';
const MORE = '… ';
const BLOCK = '"""';
const LEAVE = new Set(['/exit', '/quit', 'exit', 'quit']);

/** Questions and commands, one after the other, until the input ends. */
export class ChatLoop {
  private readonly commands: ChatCommands;

  constructor(private readonly parts: ChatParts) {
    this.commands = new ChatCommands(parts);
  }

  async run(): Promise<void> {
    const { terminal } = this.parts;
    this.banner();
    for (;;) {
      const entered = await this.question();
      if (entered === null || LEAVE.has(entered)) break;
      if (entered !== '') await this.interruptibly((signal) => this.handle(entered, signal));
    }
    terminal.line('bye');
  }

  private banner(): void {
    const { terminal, agent, conversation } = this.parts;
    const { provider, model } = conversation.model;
    terminal.line(terminal.paint('bold', `Parley chat — ${oneLine(`${provider} / ${model}`)}`));
    terminal.line(
      `Agent: ${agent.name} (${agent.permissions}) | Trace: ${this.commands.trace ? 'on' : 'off'}`,
    );
    terminal.line('Type your question. /help lists the commands.');
  }

  /** A line, or several: one that ends with a backslash goes on, and so does what stands between two lines of `"""`. */
  private async question(): Promise<string | null> {
    const { terminal } = this.parts;
    const lines: string[] = [];
    let inBlock = false;
    for (;;) {
      const entered = await terminal.next(lines.length === 0 && !inBlock ? PROMPT : MORE);
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
    const { terminal, conversation } = this.parts;
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
        onProgress: (name, { progress, total, message }) =>
          terminal.status(`  ${name} ${progress}${total === undefined ? '' : `/${total}`} ${message ?? ''}`),
        onRetry: (seconds, why) => terminal.status(`  again in ${Math.ceil(seconds)} s: ${why}`),
      })
      .finally(() => text.end());
    this.afterwards(answer);
  }

  private afterwards({ text, error, usage }: Answer): void {
    const { terminal } = this.parts;
    if (text.trim() === '') terminal.line('[empty response]');
    if (error !== null) terminal.line(terminal.paint('yellow', `[${error}]`));
    if (this.commands.trace) terminal.line(terminal.paint('dim', `  ${usage.toString()}`));
  }

  /** Ctrl-C ends what is being done, and nothing else. */
  private async interruptibly(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { terminal, person } = this.parts;
    const turn = new AbortController();
    terminal.onCtrlC(() => {
      turn.abort(new Error('interrupted'));
      person.giveUp();
    });
    try {
      await work(turn.signal);
    } catch (error) {
      if (turn.signal.aborted) terminal.line('[interrupted]');
      else terminal.line(terminal.paint('red', told(error)));
    } finally {
      terminal.onCtrlC(null);
    }
  }
}

function told(error: unknown): string {
  return error instanceof Error
    ? `[error] ${error.name}: ${terminalText(oneLine(error.message))}`
    : '[error] something that is no error was thrown';
}
