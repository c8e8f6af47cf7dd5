import { cutText, isJsonObject, type JsonObject, member } from '#core';
import { oneLine } from '#audit';
import {
  LanguageModelError,
  type ModelMessage,
  type ModelRequest,
  type ModelTurn,
  type TokenCount,
} from './language-model.js';
import { type AnswerCollector, type ModelClient, HttpModel } from './model-client.js';
import { CallCollector, readCount, readStop, toText } from './model-json.js';

/** The request of the chat completions API. */
function openAiRequest(model: string, { system, messages, tools }: ModelRequest): JsonObject {
  return {
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...messages.flatMap(apiMessages),
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

function apiMessages(message: ModelMessage): JsonObject[] {
  switch (message.role) {
    case 'user':
    case 'system':
      return [{ role: message.role, content: message.text }];
    case 'assistant': {
      const calls = message.calls.map(({ id, name, args }) => ({
        id,
        type: 'function',
        // Some servers parse the arguments in the history, so they must be JSON.
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

/** Collects an answer of the chat completions API, complete or in chunks. */
class OpenAiAnswer implements AnswerCollector {
  readonly ending = '[DONE]';
  private readonly calls = new CallCollector();
  private text = '';
  private tokens: TokenCount | null = null;
  private finish: string | null = null;

  constructor(private readonly onText: (text: string) => void) {}

  take(chunk: JsonObject): boolean {
    this.collect(chunk);
    // The usage follows the last text.
    return false;
  }

  takeWhole(answer: JsonObject): ModelTurn {
    this.collect(answer);
    return this.finishTurn(true);
  }

  finishTurn(complete: boolean): ModelTurn {
    if (!complete && this.finish === null)
      throw new LanguageModelError('malformed', 'the answer of the model broke off');
    const calls = this.calls.finishCalls();
    return { text: this.text, calls, tokens: this.tokens, stop: readStop(this.finish, calls) };
  }

  /** @throws LanguageModelError for an error that the server reports in a successful response */
  private collect(chunk: JsonObject): void {
    const { error, usage } = chunk;
    if (error !== undefined && error !== null) throw toReportedError(error);
    if (isJsonObject(usage))
      this.tokens = {
        prompt: readCount(member(usage, 'prompt_tokens')),
        completion: readCount(member(usage, 'completion_tokens')),
      };
    const choices = member(chunk, 'choices');
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
    if (!isJsonObject(choice)) return;
    const message = member(choice, 'delta') ?? member(choice, 'message');
    this.append(toText(member(message, 'content')));
    const calls = member(message, 'tool_calls');
    if (Array.isArray(calls)) calls.forEach((call: unknown, position) => this.takeCall(call, position));
    const finish = member(choice, 'finish_reason');
    if (typeof finish === 'string') this.finish = finish;
  }

  private append(text: string): void {
    if (text === '') return;
    this.text += text;
    this.onText(text);
  }

  private takeCall(piece: unknown, position: number): void {
    const index = member(piece, 'index');
    const call = this.calls.at(typeof index === 'number' ? index : position);
    const id = toText(member(piece, 'id'));
    if (call.id === '') call.id = id;
    const named = member(piece, 'function');
    if (call.name === '') call.name = toText(member(named, 'name'));
    const args = member(named, 'arguments');
    call.text += isJsonObject(args) ? JSON.stringify(args) : toText(args);
  }
}

function toReportedError(error: unknown): LanguageModelError {
  const message = toText(isJsonObject(error) ? member(error, 'message') : error);
  return new LanguageModelError(
    'overloaded',
    `LLM call failed: ${cutText(oneLine(message), 2_000) || 'an error in the stream'}`,
    {
      transient: true,
    },
  );
}

/** Models behind OpenAI's chat completions API, also of LM Studio, Ollama and vLLM. */
export class OpenAiModel extends HttpModel {
  constructor(
    readonly provider: string,
    readonly model: string,
    client: ModelClient,
  ) {
    super(client);
  }

  protected buildRequest(request: ModelRequest): JsonObject {
    return openAiRequest(this.model, request);
  }

  protected answer(onText: (text: string) => void): AnswerCollector {
    return new OpenAiAnswer(onText);
  }
}
