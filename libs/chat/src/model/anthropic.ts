import { cutText, isJsonObject, type JsonObject, member } from '#core';
import { oneLine } from '#audit';
import {
  LanguageModelError,
  type ModelMessage,
  type ModelRequest,
  type ModelTurn,
} from './language-model.js';
import { type AnswerCollector, type ModelClient, HttpModel } from './model-client.js';
import { CallCollector, readCount, readStop, toText } from './model-json.js';

/** The request of the messages API. It refuses empty texts, so they are omitted. */
function anthropicRequest(
  model: string,
  maxTokens: number,
  { system, messages, tools }: ModelRequest,
): JsonObject {
  return {
    model,
    max_tokens: maxTokens,
    ...(system !== '' && { system }),
    messages: messages.map(apiMessage).filter(({ content }) => content.length > 0),
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

interface ApiMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly JsonObject[];
}

const textBlocks = (text: string) => (text.trim() === '' ? [] : [{ type: 'text', text }]);

function apiMessage(message: ModelMessage): ApiMessage {
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

const TRANSIENT = new Set(['overloaded_error', 'api_error', 'rate_limit_error', 'timeout_error']);

/** Collects an answer of the messages API from its events. */
class AnthropicAnswer implements AnswerCollector {
  private readonly calls = new CallCollector();
  /** Index of the block that the latest text belongs to. */
  private textBlock: unknown;
  private text = '';
  private prompt = 0;
  private completion = 0;
  private counted = false;
  private stop: string | null = null;

  constructor(private readonly onText: (text: string) => void) {}

  take(event: JsonObject): boolean {
    switch (event['type']) {
      case 'message_start':
        this.count(member(event['message'], 'usage'));
        return false;
      case 'content_block_start':
        this.begin(event['index'], event['content_block']);
        return false;
      case 'content_block_delta':
        this.grow(event['index'], event['delta']);
        return false;
      case 'message_delta':
        this.count(event['usage']);
        this.stop = toText(member(event['delta'], 'stop_reason')) || this.stop;
        return false;
      case 'message_stop':
        return true;
      case 'error':
        throw toReportedError(event['error']);
      default:
        // `ping` and future events.
        return false;
    }
  }

  takeWhole(message: JsonObject): ModelTurn {
    if (message['type'] === 'error') throw toReportedError(message['error']);
    const { content } = message;
    if (!Array.isArray(content))
      throw new LanguageModelError('malformed', 'the answer of the model has no content');
    content.forEach((block: unknown, index) => this.begin(index, block));
    this.count(message['usage']);
    this.stop = toText(message['stop_reason']);
    return this.finishTurn(true);
  }

  finishTurn(complete: boolean): ModelTurn {
    if (!complete && this.stop === null)
      throw new LanguageModelError('malformed', 'the answer of the model broke off');
    const calls = this.calls.finishCalls();
    return {
      text: this.text,
      calls,
      tokens: this.counted ? { prompt: this.prompt, completion: this.completion } : null,
      stop: readStop(this.stop, calls),
    };
  }

  private begin(index: unknown, block: unknown): void {
    const type = member(block, 'type');
    if (type === 'text') this.append(index, toText(member(block, 'text')));
    if (type !== 'tool_use') return;
    const call = this.calls.at(readPlace(index));
    call.id = toText(member(block, 'id'));
    call.name = toText(member(block, 'name'));
    const input = member(block, 'input');
    if (isJsonObject(input) && Object.keys(input).length > 0) call.text = JSON.stringify(input);
  }

  private grow(index: unknown, delta: unknown): void {
    const type = member(delta, 'type');
    if (type === 'text_delta') this.append(index, toText(member(delta, 'text')));
    if (type === 'input_json_delta')
      this.calls.at(readPlace(index)).text += toText(member(delta, 'partial_json'));
  }

  private append(block: unknown, text: string): void {
    if (text === '') return;
    const added = this.text !== '' && block !== this.textBlock ? `\n${text}` : text;
    this.textBlock = block;
    this.text += added;
    this.onText(added);
  }

  private count(usage: unknown): void {
    if (!isJsonObject(usage)) return;
    this.counted = true;
    const prompt = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'];
    const read = prompt.reduce((sum, name) => sum + readCount(member(usage, name)), 0);
    // Later counts include the earlier ones.
    this.prompt = Math.max(this.prompt, read);
    this.completion = Math.max(this.completion, readCount(member(usage, 'output_tokens')));
  }
}

const readPlace = (index: unknown) => (typeof index === 'number' ? index : 0);

function toReportedError(error: unknown): LanguageModelError {
  const type = toText(member(error, 'type'));
  const message = cutText(oneLine(`${type}: ${toText(member(error, 'message'))}`), 2_000);
  return new LanguageModelError('overloaded', `Anthropic call failed: ${message}`, {
    transient: TRANSIENT.has(type),
  });
}

/** Models behind Anthropic's messages API. */
export class AnthropicModel extends HttpModel {
  readonly provider = 'anthropic';

  constructor(
    readonly model: string,
    private readonly maxTokens: number,
    client: ModelClient,
  ) {
    super(client);
  }

  protected buildRequest(request: ModelRequest): JsonObject {
    return anthropicRequest(this.model, this.maxTokens, request);
  }

  protected answer(onText: (text: string) => void): AnswerCollector {
    return new AnthropicAnswer(onText);
  }
}
