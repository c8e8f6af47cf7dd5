import type { JsonObject } from '#dispatcher';
import type { ModelMessage, ModelRequest } from '../model/language-model.js';

/** A request as the messages wire has it. Texts without a character are refused there, so none is sent. */
export function anthropicRequest(
  model: string,
  maxTokens: number,
  { system, messages, tools }: ModelRequest,
): JsonObject {
  return {
    model,
    max_tokens: maxTokens,
    ...(system !== '' && { system }),
    messages: messages.map(wireMessage).filter(({ content }) => content.length > 0),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        name,
        description,
        input_schema: parameters,
      })),
    }),
    stream: true,
  };
}

interface WireMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly JsonObject[];
}

const textBlocks = (text: string) => (text.trim() === '' ? [] : [{ type: 'text', text }]);

function wireMessage(message: ModelMessage): WireMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: textBlocks(message.text) };
    case 'system':
      return { role: 'user', content: textBlocks(`[Context] ${message.text}`) };
    case 'assistant':
      return {
        role: 'assistant',
        content: [
          ...textBlocks(message.text),
          ...message.calls.map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: args ?? {} })),
        ],
      };
    case 'tool':
      return {
        role: 'user',
        content: message.results.map(({ id, content, failed }) => ({
          type: 'tool_result',
          tool_use_id: id,
          content,
          ...(failed && { is_error: true }),
        })),
      };
  }
}
