import { wellFormed } from '#audit';
import { readJson, isJsonObject, member } from '#core';
import type { ModelMessage } from '../model/language-model.js';
import { Usage } from './answer.js';

const HISTORY_ROLES = ['user', 'assistant', 'system'] as const;

/** A remembered message: a question or an answer, without tool results. */
export interface HistoryEntry {
  /** Author of the message. */
  readonly role: (typeof HISTORY_ROLES)[number];
  /** Text of the message. */
  readonly content: string;
}

/** Maximum number of remembered messages; the oldest are removed first. */
export const MAX_HISTORY = 1_000;

/** The list is not a history. */
export class HistoryError extends Error {
  /** A constant name: `instanceof` fails where two copies of the package are loaded. */
  override readonly name = 'HistoryError';
}

/** @throws HistoryError naming the first invalid entry */
export function checkHistory(entries: unknown): HistoryEntry[] {
  if (!Array.isArray(entries)) throw new HistoryError('a history is a list of { role, content }');
  return entries.map((entry: unknown, index) => {
    const { role, content } = (entry ?? {}) as { role?: unknown; content?: unknown };
    const known = HISTORY_ROLES.find((name) => name === role);
    if (!known) throw new HistoryError(`entry ${index}: role must be one of ${HISTORY_ROLES.join(', ')}`);
    if (typeof content !== 'string') throw new HistoryError(`entry ${index}: content must be text`);
    return { role: known, content };
  });
}

export function historyMessage({ role, content }: HistoryEntry): ModelMessage {
  return role === 'assistant' ? { role, text: content, calls: [] } : { role, text: content };
}

/** The file is not a conversation; the message names the position. */
export class ConversationFileError extends Error {
  /** A constant name: `instanceof` fails where two copies of the package are loaded. */
  override readonly name = 'ConversationFileError';
}

interface SavedConversation {
  readonly history: readonly HistoryEntry[];
  readonly usage: Usage;
}

const FILE_VERSION = 1;
const MAX_NESTING = 32;
const MAX_CONTENT = 32_768;
const MAX_FILE = 48 * 1_048_576;

/** Serialises a conversation, without tool results and without anything that grants rights. */
export function writeConversation(
  { history, usage }: SavedConversation,
  permissions: string,
  withoutSecrets: (text: string) => string,
): string {
  const entries = history.filter(({ role }) => role !== 'system').slice(-MAX_HISTORY);
  return JSON.stringify(
    {
      version: FILE_VERSION,
      exported_at: new Date().toISOString(),
      permissions,
      token_usage: {
        prompt_tokens: usage.prompt,
        completion_tokens: usage.completion,
        total_tokens: usage.total,
        cost_usd: usage.costUsd,
      },
      conversation_history: entries.map(({ role, content }) => ({
        role,
        content: cutToBytes(withoutSecrets(content), MAX_CONTENT),
      })),
    },
    null,
    2,
  );
}

/**
 * Reads an exported conversation. Permissions in it are ignored: rights depend on the agent only.
 * @returns null when the text is not JSON @throws ConversationFileError when it is JSON and not a conversation
 */
export function readConversation(text: string): SavedConversation | null {
  if (text.length > MAX_FILE) throw new ConversationFileError('the file is too large');
  const reading = readJson(text, MAX_NESTING);
  if (!reading.ok) {
    if (reading.fault === 'syntax') return null;
    throw new ConversationFileError(reading.why);
  }
  const file = reading.value;
  if (!isJsonObject(file)) throw new ConversationFileError('a conversation is a JSON object');
  const version = member(file, 'version') ?? FILE_VERSION;
  if (version !== FILE_VERSION) throw new ConversationFileError(`version: only ${FILE_VERSION} can be read`);
  const entries = member(file, 'conversation_history');
  if (!Array.isArray(entries)) throw new ConversationFileError('conversation_history: must be a list');
  if (entries.length > MAX_HISTORY)
    throw new ConversationFileError(`conversation_history: more than ${MAX_HISTORY} messages`);
  return { history: entries.map(readEntry), usage: readUsage(member(file, 'token_usage')) };
}

function readEntry(entry: unknown, index: number): HistoryEntry {
  const error = (message: string) => new ConversationFileError(`conversation_history.${index}: ${message}`);
  const role = member(entry, 'role');
  const content = member(entry, 'content');
  if (role !== 'user' && role !== 'assistant') throw error('role must be user or assistant');
  if (content !== null && typeof content !== 'string') throw error('content must be text or null');
  if (Buffer.byteLength(content ?? '') > MAX_CONTENT)
    throw error(`content is longer than ${MAX_CONTENT} bytes`);
  return { role, content: content ?? '' };
}

function readUsage(given: unknown): Usage {
  const count = (name: string) => {
    const value = member(given, name);
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0;
  };
  return new Usage(
    Math.floor(count('prompt_tokens')),
    Math.floor(count('completion_tokens')),
    count('cost_usd'),
  );
}

function cutToBytes(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return wellFormed(text);
  let end = most;
  // Back to the start of a character.
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString();
}
