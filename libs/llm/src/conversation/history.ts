import type { ModelMessage } from '../model/language-model.js';

const HISTORY_ROLES = ['user', 'assistant', 'system'] as const;

/** What is remembered from question to question: what was asked and what was answered, and nothing of what tools returned. */
export interface HistoryEntry {
  /** Who said it. */
  readonly role: (typeof HISTORY_ROLES)[number];
  /** What was said. */
  readonly content: string;
}

/** Entries that are remembered; the oldest pairs go first. */
export const MAX_HISTORY = 1_000;

/** A list that is no history. */
export class HistoryError extends Error {
  /** Stays the same where two copies of the package meet. */
  override readonly name = 'HistoryError';
}

/** @throws HistoryError naming the first entry that is none */
export function checkedHistory(entries: unknown): HistoryEntry[] {
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
