import { Inject, Injectable } from '@nestjs/common';
import { createAskingCall, Refused, type McpRequest, isJsonObject, type JsonObject, member } from '#core';
import type { GovernedRecords } from '#data';
import { isNameable } from '#policy';
import type { ContentBlock } from '#tools';
import { blockIn } from './call-tool.js';
import { McpMethod, OF_AGENT, takePage } from './method.js';
import { BUILT_IN_PROMPTS } from '../prompts/built-in-prompts.js';
import { PromptRegistry } from '../prompts/prompt-registry.js';
import {
  type ArgumentCompletion,
  type Prompt,
  type PromptMessage,
  readPromptArguments,
  type RenderedPrompt,
} from '../prompts/prompt.js';
import { meansAbsence } from './resource-methods.js';
import { ResultLimit } from '../calls/call-limits.js';
import { ReadAccounts, RecordsSource } from '../reads/read-accounts.js';
import { invalidParams, readDialect } from '../protocol.js';

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

/** The prompts of this process. */
@Injectable()
export class PromptMethods {
  constructor(
    private readonly registry: PromptRegistry,
    @Inject(ReadAccounts) private readonly reads: Pick<ReadAccounts, 'run'>,
    private readonly limit: ResultLimit,
  ) {}

  @McpMethod('prompts/list', { cache: OF_AGENT })
  list(params: JsonObject, request: McpRequest): JsonObject {
    const prompts = this.registry.all().map(describe);
    const { entries, nextCursor } = takePage('prompts', prompts, params, readDialect(request));
    return { prompts: entries, ...(nextCursor !== undefined && { nextCursor }) };
  }

  /** Validates the arguments and renders under the agent's own rights. */
  @McpMethod('prompts/get', { asksAbout: 'name' })
  async get(params: JsonObject, request: McpRequest): Promise<JsonObject> {
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
    const rendered = await this.reads.run(
      { name: `prompt:${name}`, args: given, context: request },
      async (records) => prompt.render({ args, records, ...createAskingCall(request.clientRequests) }),
    );
    const { description, messages } = toMessages(prompt, rendered);
    const limit = this.limit.exceededBy(
      messages.map(({ content }) => printBlock(content)),
      request.agent,
    );
    if (limit !== null) {
      const advice = BUILT_IN_PROMPTS.includes(prompt)
        ? 'Name fewer classes in its argument.'
        : 'A prompt should name the tools that fetch large data, not carry it.';
      throw invalidParams(`Prompt output exceeded ${limit} bytes. ${advice}`);
    }
    const dialect = readDialect(request);
    return {
      description,
      messages: messages.map(({ role, content }) => ({ role, content: blockIn(dialect, content) })),
    };
  }
}

const printBlock = (block: ContentBlock) => (block.type === 'text' ? block.text : JSON.stringify(block));

function toMessages(
  prompt: Prompt,
  rendered: RenderedPrompt,
): { readonly description: string; readonly messages: readonly PromptMessage[] } {
  const made: unknown = rendered;
  if (typeof made !== 'string' && (typeof made !== 'object' || made === null))
    throw new TypeError(`the prompt '${prompt.name}' returns no text, { description, text } or { messages }`);
  if (typeof rendered === 'object' && 'messages' in rendered) return rendered;
  const { description, text } =
    typeof rendered === 'string'
      ? {
          description: BUILT_IN_PROMPTS.includes(prompt)
            ? `Parse analytics prompt: ${prompt.name}`
            : prompt.description,
          text: rendered,
        }
      : rendered;
  return { description, messages: [{ role: 'user', content: { type: 'text', text } }] };
}

/** Values per answer, as the protocol limits them. */
const MAX_VALUES = 100;
const TEMPLATE = /^parse:\/\/\{className\}\/(?:schema|count|samples)$/;

function listStarting(names: readonly string[], typed: string): string[] {
  const prefix = typed.toLowerCase();
  return names.filter((name) => name.toLowerCase().startsWith(prefix));
}

/** Each of several names begins with all that was typed. @param most bytes */
function fitValues(found: readonly string[], most: number): readonly string[] {
  let bytes = 0;
  const fitting = found.findIndex((value) => (bytes += Buffer.byteLength(JSON.stringify(value))) > most);
  return fitting < 0 ? found : found.slice(0, fitting);
}

async function classNames(records: GovernedRecords): Promise<string[]> {
  return (await records.classes()).map(({ className }) => className);
}

async function fieldNames(
  records: GovernedRecords,
  className: unknown,
  pointersOnly: boolean,
): Promise<string[]> {
  if (typeof className !== 'string' || className === '') return [];
  try {
    const { fields, schema, policy } = await records.describe(className);
    return fields.filter((field) => {
      const column = schema.fields.get(field);
      return (
        isNameable(field, column?.origin, policy.fields) && (!pointersOnly || column?.type === 'Pointer')
      );
    });
  } catch (error) {
    // A hidden class gives no suggestions, like a class that does not exist.
    if (error instanceof Refused && meansAbsence(error.refusal)) return [];
    throw error;
  }
}

/** `completion/complete`: class and field names that the agent may read. */
@Injectable()
export class Complete {
  constructor(
    private readonly registry: PromptRegistry,
    private readonly records: RecordsSource,
    private readonly limit: ResultLimit,
  ) {}

  @McpMethod('completion/complete', { legacySince: '2025-11-25' })
  async handle(params: JsonObject, request: McpRequest): Promise<JsonObject> {
    const name = member(params.argument, 'name');
    const typed = member(params.argument, 'value');
    if (typeof name !== 'string' || typeof typed !== 'string') throw invalidParams();
    const completion = this.findCompletion(params.ref, name);
    const found = completion
      ? await this.suggest(completion, typed, params.context, this.records.for(request))
      : [];
    const values = fitValues(found.slice(0, MAX_VALUES), this.limit.for(request.agent));
    return { completion: { values, total: found.length, hasMore: found.length > values.length } };
  }

  private findCompletion(ref: unknown, argument: string): ArgumentCompletion | undefined {
    const type = member(ref, 'type');
    if (type === 'ref/resource') {
      const uri = member(ref, 'uri');
      if (typeof uri !== 'string' || !TEMPLATE.test(uri)) throw invalidParams('Unknown resource template');
      if (argument !== 'className') throw invalidParams('Unknown argument');
      return { kind: 'class' };
    }
    if (type !== 'ref/prompt') throw invalidParams();
    const name = member(ref, 'name');
    const prompt = typeof name === 'string' ? this.registry.get(name) : undefined;
    if (!prompt) throw invalidParams('Unknown prompt');
    const declared = prompt.arguments.find((candidate) => candidate.name === argument);
    if (!declared) throw invalidParams('Unknown argument');
    return declared.completion;
  }

  private async suggest(
    completion: ArgumentCompletion,
    typed: string,
    context: unknown,
    records: GovernedRecords,
  ): Promise<string[]> {
    if (completion.kind === 'class') return listStarting(await classNames(records), typed);
    if (completion.kind === 'classes') {
      const listed = typed.slice(0, typed.lastIndexOf(',') + 1);
      const last = typed.slice(listed.length).trim();
      return listStarting(await classNames(records), last).map((found) => listed + found);
    }
    const others = member(context, 'arguments');
    const className = isJsonObject(others) ? member(others, completion.of) : undefined;
    return listStarting(await fieldNames(records, className, completion.pointersOnly ?? false), typed);
  }
}
