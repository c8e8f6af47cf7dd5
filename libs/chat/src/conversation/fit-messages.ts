import { estimateTokens } from '#data';
import type { ModelMessage, ModelRequest } from '../model/language-model.js';

/** Tokens of a message in addition to its text. */
const PER_MESSAGE = 4;

/** Estimated tokens of a message. */
export function messageSize(message: ModelMessage): number {
  return PER_MESSAGE + estimateTokens(readMessageText(message));
}

/** Estimated tokens of the system prompt and the tools, which every request contains. */
export function measureFixedSize({ system, tools }: Omit<ModelRequest, 'messages'>): number {
  return estimateTokens(system) + estimateTokens(tools.length > 0 ? JSON.stringify(tools) : '');
}

function readMessageText(message: ModelMessage): string {
  switch (message.role) {
    case 'user':
    case 'system':
      return message.text;
    case 'assistant':
      return message.text + (message.calls.length > 0 ? JSON.stringify(message.calls) : '');
    case 'tool':
      return message.results.map(({ id, content }) => id + content).join('');
  }
}

export const DROPPED_RESULT = '[left out to make room: call the tool again if it is needed]';

/**
 * Fits messages into a number of tokens. It first empties the oldest tool results, then removes the oldest messages
 * of earlier questions; the question and the newest results stay. Calls and their results stay together.
 * @param earlier number of messages of earlier questions
 * @returns null when the rest is still too long
 */
export function fitMessages(
  messages: readonly ModelMessage[],
  earlier: number,
  budget: number,
): readonly ModelMessage[] | null {
  const kept = [...messages];
  let size = kept.reduce((sum, message) => sum + messageSize(message), 0);
  const newest = kept.findLastIndex(({ role }) => role === 'tool');
  for (let index = earlier; index < newest && size > budget; index += 1) {
    const message = kept[index];
    if (message?.role !== 'tool') continue;
    const emptied = withoutContents(message);
    size -= messageSize(message) - messageSize(emptied);
    kept[index] = emptied;
  }
  let first = 0;
  while (size > budget && first < earlier) {
    size -= messageSize(kept[first] as ModelMessage);
    first += 1;
  }
  // Providers refuse a conversation that starts with an answer.
  while (first < earlier && kept[first]?.role === 'assistant') first += 1;
  return size > budget ? null : kept.slice(first);
}

function withoutContents({ role, results }: Extract<ModelMessage, { role: 'tool' }>): ModelMessage {
  return {
    role,
    results: results.map((result) =>
      result.content.length > DROPPED_RESULT.length ? { ...result, content: DROPPED_RESULT } : result,
    ),
  };
}
