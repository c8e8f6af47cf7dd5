import { readFile, writeFile } from 'node:fs/promises';
import { oneLine } from '#audit';
import type { ChatParts } from './chat-loop.js';

interface ChatCommand {
  readonly does: string;
  readonly run: (rest: string, signal: AbortSignal) => void | Promise<void>;
}

const SHOWN_OF_HISTORY = 120;
const SHOWN_OF_SUMMARY = 200;

/** What begins with a slash. */
export class ChatCommands {
  trace: boolean;
  private readonly commands: ReadonlyMap<string, ChatCommand>;

  constructor(private readonly parts: ChatParts) {
    this.trace = parts.trace;
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
    this.parts.conversation.reset();
    this.line('[conversation cleared]');
  }

  private async compact(signal: AbortSignal): Promise<void> {
    const { conversation } = this.parts;
    const summary = await conversation.compact(signal);
    if (summary === '') return this.line('[nothing to compact]');
    this.line(`[compacted with ${conversation.lastCallUsage.total} tokens]`);
    this.line(oneLine(beginning(summary, SHOWN_OF_SUMMARY)));
  }

  private async tools(signal: AbortSignal): Promise<void> {
    const listed = await this.parts.agent.tools.list(signal);
    for (const name of listed.map((tool) => tool.name).sort()) this.line(oneLine(name));
  }

  private toggleTrace(): void {
    this.trace = !this.trace;
    this.line(`trace: ${this.trace ? 'on' : 'off'}`);
  }

  private cost(): void {
    const { usage, lastCallUsage } = this.parts.conversation;
    this.line(`session: ${usage.toString(4)}`);
    this.line(`last:    ${lastCallUsage.toString(6)}`);
  }

  private history(): void {
    const { history } = this.parts.conversation;
    if (history.length === 0) this.line('[nothing was said]');
    for (const [index, { role, content }] of history.entries())
      this.line(`${index + 1}. ${role}: ${oneLine(beginning(content, SHOWN_OF_HISTORY))}`);
  }

  private async export(file: string): Promise<void> {
    if (file === '') return this.line('/export FILE');
    // For its owner alone, and never over another file.
    await writeFile(file, this.parts.conversation.export(), { flag: 'wx', mode: 0o600 });
    this.line(`[written to ${oneLine(file)}]`);
  }

  private async import(file: string): Promise<void> {
    if (file === '') return this.line('/import FILE');
    const { conversation } = this.parts;
    const imported = conversation.import(await readFile(file, 'utf8'));
    this.line(
      imported ? `[${conversation.history.length} messages read]` : '[not read: the file is not JSON]',
    );
  }

  private line(text: string): void {
    this.parts.terminal.line(text);
  }
}

const beginning = (text: string, most: number) => Array.from(text).slice(0, most).join('');
