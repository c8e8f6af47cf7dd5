import type { JsonObject } from '#dispatcher';
import type { ModelMessage, ModelRequest } from '../model/language-model.js';

/** A request as the chat completions wire has it. */
export function openAiRequest(model: string, { system, messages, tools }: ModelRequest): JsonObject {
  return {
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...messages.flatMap(wireMessages),
    ],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        type: 'function',
        function: { name, description, parameters },
      })),
      tool_choice: 'auto',
    }),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function wireMessages(message: ModelMessage): JsonObject[] {
  switch (message.role) {
    case 'user':
    case 'system':
      return [{ role: message.role, content: message.text }];
    case 'assistant': {
      const calls = message.calls.map(({ id, name, args }) => ({
        id,
        type: 'function',
        // Servers that read their own history again stumble over arguments that are no JSON.
        function: { name, arguments: JSON.stringify(args ?? {}) },
      }));
      return [
        {
          role: 'assistant',
          content: message.text === '' && calls.length > 0 ? null : message.text,
          ...(calls.length > 0 && { tool_calls: calls }),
        },
      ];
    }
    case 'tool':
      return message.results.map(({ id, content }) => ({ role: 'tool', tool_call_id: id, content }));
  }
}
