import { estimatedTokens } from '#embeddings';
import type { ModelMessage, ModelRequest } from '../model/language-model.js';

/** What every message costs beside its text. */
const PER_MESSAGE = 4;

/** Tokens that a message will count for, before a provider has counted. */
export function messageSize(message: ModelMessage): number {
  return PER_MESSAGE + estimatedTokens(textOf(message));
}

/** Tokens of what a request says every time: the system prompt and the tools. */
export function fixedSize({ system, tools }: Omit<ModelRequest, 'messages'>): number {
  return estimatedTokens(system) + estimatedTokens(tools.length > 0 ? JSON.stringify(tools) : '');
}

function textOf(message: ModelMessage): string {
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
