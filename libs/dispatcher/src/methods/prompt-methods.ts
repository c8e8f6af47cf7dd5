import { askingCall } from '#agent';
import type { ContentBlock } from '#tools';
import { pageOf } from '../cursors.js';
import { isJsonObject, type JsonObject } from '../json-object.js';
import type { Prompt, PromptMessage, RenderedPrompt } from '../prompts/prompt.js';
import { readPromptArguments } from '../prompts/prompt-arguments.js';
import type { PromptRegistry } from '../prompts/prompt-registry.js';
import { invalidParams } from '../protocol-fault.js';
import type { ReadAccounts } from '../reads/read-accounts.js';
import { exceedsResponseLimit, MAX_RESPONSE_BYTES } from '../response-limit.js';
import { blockIn } from './content-dialect.js';
import type { MethodRequest } from './method.js';

function describe(prompt: Prompt): JsonObject {
  return {
    name: prompt.name,
    description: prompt.description,
    arguments: prompt.arguments.map(({ name, description, required = false }) => ({
      name,
      description,
      required,
    })),
  };
}

export function listPrompts(registry: PromptRegistry, { params, dialect }: MethodRequest): JsonObject {
  const prompts = registry.all().map(describe);
  if (!dialect.additions) return { prompts };
  const { entries, nextCursor } = pageOf('prompts', prompts, params.cursor);
  return { prompts: entries, ...(nextCursor !== undefined && { nextCursor }) };
}

/** `prompts/get`: validates the arguments and renders under the agent's own rights. */
export class GetPrompt {
  constructor(
    private readonly registry: PromptRegistry,
    private readonly reads: Pick<ReadAccounts, 'run'>,
  ) {}

  async handle({ params, context, dialect }: MethodRequest): Promise<JsonObject> {
    const { name } = params;
    if (typeof name !== 'string') throw invalidParams('Missing prompt name');
    const prompt = this.registry.get(name);
    if (!prompt) throw invalidParams(`Unknown prompt: ${name}`);
    const given = params.arguments ?? {};
    if (!isJsonObject(given)) throw invalidParams();
    const args = readPromptArguments(given);
    for (const argument of prompt.arguments) {
      if (argument.required && !args.has(argument.name)) {
        throw invalidParams(`missing required argument: ${argument.name}`);
      }
    }
    const rendered = await this.reads.run({ name: `prompt:${name}`, args: given, context }, async (records) =>
      prompt.render({ args, records, ...askingCall(context.asks) }),
    );
    const { description, messages } = messagesOf(name, rendered);
    if (messages.some(({ content }) => exceedsResponseLimit(printed(content)))) {
      throw invalidParams(
        `Prompt output exceeded ${MAX_RESPONSE_BYTES} bytes. A prompt should name the tools that fetch large data, not carry it.`,
      );
    }
    return {
      description,
      messages: messages.map(({ role, content }) => ({ role, content: blockIn(dialect, content) })),
    };
  }
}

const printed = (block: ContentBlock) => (block.type === 'text' ? block.text : JSON.stringify(block));

function messagesOf(
  name: string,
  rendered: RenderedPrompt,
): { readonly description: string; readonly messages: readonly PromptMessage[] } {
  if (typeof rendered === 'object' && 'messages' in rendered) return rendered;
  const { description, text } =
    typeof rendered === 'string'
      ? { description: `Parse analytics prompt: ${name}`, text: rendered }
      : rendered;
  return { description, messages: [{ role: 'user', content: { type: 'text', text } }] };
}
