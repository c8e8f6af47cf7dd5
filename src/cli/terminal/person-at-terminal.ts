import {
  type ClientLink,
  type ClientReply,
  ClientUnreachable,
  isJsonObject,
  type JsonObject,
  member,
} from '#core';
import { oneLine, terminalText } from '#audit';
import type { AskingTerminal } from './terminal.js';

/**
 * The lines of a client request on the terminal. An approval is shown in full, with the operation as the last line, so
 * that it cannot scroll away.
 */
function questionLines(params: JsonObject): string[] {
  const message = String(params['message']);
  const meta = params['_meta'];
  const preview = member(meta, 'parse.preview');
  if (!isJsonObject(preview)) return [terminalText(message)];
  const [asked = ''] = message.split('\n', 1);
  const shown = JSON.stringify(preview, null, 2).split('\n').map(oneLine);
  const operation = `${String(member(meta, 'parse.tool'))} (${String(member(meta, 'parse.permission'))})`;
  return [oneLine(asked), ...shown, oneLine(`May ${operation} run as shown?`)];
}

const YES = /^y(es)?$/i;

/** Answers client requests of running calls at the terminal: approvals and short forms, one after the other. */
export class PersonAtTerminal implements ClientLink {
  private last: Promise<unknown> = Promise.resolve();
  private asking: AbortController | null = null;

  constructor(private readonly terminal: AskingTerminal) {}

  notify(): void {
    // The request is not shown.
  }

  /** Cancels the open request. */
  giveUp(): void {
    this.asking?.abort(new ClientUnreachable('aborted'));
  }

  request(method: string, params: JsonObject, timeout: number): Promise<ClientReply> {
    const next = this.last.then(() => this.answer(method, params, timeout));
    this.last = next.catch(() => undefined);
    return next;
  }

  private async answer(method: string, params: JsonObject, timeout: number): Promise<ClientReply> {
    const schema = params['requestedSchema'];
    if (method !== 'elicitation/create' || !isJsonObject(schema) || !this.terminal.isPerson)
      return { error: { code: -32601, message: 'not asked here' } };
    const asking = (this.asking = new AbortController());
    const timer = setTimeout(() => asking.abort(new ClientUnreachable('timed-out')), timeout);
    try {
      const result = await this.fillIn(params, schema, asking.signal);
      asking.signal.throwIfAborted();
      return { result };
    } finally {
      clearTimeout(timer);
      this.asking = null;
    }
  }

  private async fillIn(params: JsonObject, schema: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const { terminal } = this;
    terminal.line();
    for (const line of questionLines(params)) terminal.line(terminal.paint('yellow', line));
    const properties = member(schema, 'properties');
    const fields = isJsonObject(properties) ? Object.entries(properties) : [];
    const content: Record<string, unknown> = {};
    for (const [name, field] of fields) {
      const entered = await terminal.answer(buildPrompt(name, field), signal);
      if (entered.kind !== 'line') return { action: 'cancel' };
      const value = readValue(field, entered.text.trim());
      // A single yes-or-no field is the whole decision.
      if (value === false && fields.length === 1) return { action: 'decline' };
      if (value !== undefined) content[name] = value;
    }
    return { action: 'accept', content };
  }
}

function buildPrompt(name: string, field: unknown): string {
  const choices = member(field, 'enum');
  if (member(field, 'type') === 'boolean') return `${terminalText(name)}? [y/N] `;
  return Array.isArray(choices)
    ? `${terminalText(name)} (${terminalText(choices.join(', '))}): `
    : `${terminalText(name)}: `;
}

/** The input converted to the type of its field; the sender validates it. */
function readValue(field: unknown, entered: string): unknown {
  const type = member(field, 'type');
  if (type === 'boolean') return YES.test(entered);
  if (entered === '') return undefined;
  return type === 'number' || type === 'integer' ? Number(entered) : entered;
}
