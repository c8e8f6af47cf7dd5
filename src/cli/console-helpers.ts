import { oneLine } from '#audit';
import { isJsonObject, type JsonObject, member } from '#dispatcher';
import type { Conversation } from '#llm';
import type { OpenAgent } from './open-agent.js';
import { toolEnvelope } from './tool-envelope.js';

export interface ConsoleParts {
  readonly agent: OpenAgent;
  /** Null: no model can be asked. */
  readonly conversation: Conversation | null;
  readonly print: (line: string) => void;
}

type Helper = (...args: never[]) => unknown;

/** What is bound at the prompt of `parley console`. `values` are looked up anew whenever their name is entered. */
export interface ConsoleHelpers {
  readonly functions: Readonly<Record<string, Helper>>;
  readonly values: Readonly<Record<string, () => unknown>>;
}

const signal = new AbortController().signal;

export function consoleHelpers({ agent, conversation, print }: ConsoleParts): ConsoleHelpers {
  const t = async (name: string, args: JsonObject = {}) =>
    toolEnvelope(await agent.tools.call(String(name), asSent(args), { signal }));
  const dispatch = async (method: string, params: JsonObject = {}) => {
    const reply = await agent.tools.dispatch(String(method), asSent(params), { signal });
    const envelope = { jsonrpc: '2.0', id: 1 };
    if ('error' in reply) return { status: reply.status, body: { ...envelope, error: reply.error } };
    if ('result' in reply) return { status: 200, body: { ...envelope, result: reply.result } };
    return { status: 202, body: null };
  };
  const named = (names: readonly string[]) => {
    for (const name of [...names].sort()) print(oneLine(name));
    return names.length;
  };
  return {
    functions: {
      t,
      q: (class_name: string, options: JsonObject = {}) => t('query_class', { ...options, class_name }),
      count: (class_name: string, options: JsonObject = {}) => t('count_objects', { ...options, class_name }),
      schema: (class_name: string) => t('get_schema', { class_name }),
      dispatch,
      render_prompt: (name: string, args: JsonObject = {}) =>
        dispatch('prompts/get', { name, arguments: args }),
    },
    values: {
      agent: () => agent.describe(),
      tools: async () => named((await agent.tools.list(signal)).map(({ name }) => name)),
      schemas: async () => printedSchemas(await t('get_all_schemas'), print),
      prompts: async () => {
        const { body } = await dispatch('prompts/list');
        return named(namesIn(member(member(body, 'result'), 'prompts')));
      },
      ...(conversation && { mcp: () => conversation }),
    },
  };
}

/** As the wire would carry it: what was made at the prompt is of the prompt's own classes, and is no plain object elsewhere. */
function asSent(given: unknown): JsonObject {
  const sent: unknown = JSON.parse(JSON.stringify(given ?? {}));
  if (!isJsonObject(sent)) throw new TypeError('arguments are an object');
  return sent;
}

function printedSchemas(reply: JsonObject, print: (line: string) => void): unknown {
  const { data } = reply;
  if (!isJsonObject(data)) return reply;
  const custom = namesIn(data['custom']);
  const builtIn = namesIn(data['built_in']);
  print(oneLine(`Custom: ${custom.join(', ')}`));
  print(oneLine(`Built-in: ${builtIn.join(', ')}`));
  return [...custom, ...builtIn];
}

function namesIn(list: unknown): string[] {
  const entries: unknown[] = Array.isArray(list) ? list : [];
  return entries
    .map((entry) => member(entry, 'name'))
    .filter((name): name is string => typeof name === 'string');
}
