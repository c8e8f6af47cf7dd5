import { createInterface } from 'node:readline';
import { Recoverable, type REPLEval, start } from 'node:repl';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { inspect } from 'node:util';
import { type Context, runInContext } from 'node:vm';
import { isJsonObject, type JsonObject, member } from '#core';
import { oneLine, terminalText } from '#audit';
import { loadWithPlugins } from '#parley/instance';
import { Answer, type Conversation, ModelSettingsError } from '#chat';
import { withConfig } from './command-options.js';
import { openAgent, type OpenAgent, type OpenConversation, prepareConversation } from './open-agent.js';
import { PersonAtTerminal } from './terminal/person-at-terminal.js';
import { PromptTerminal } from './terminal/terminal.js';
import { toolEnvelope } from './tool.js';

interface ConsoleCommandOptions {
  readonly agent?: string;
  readonly config?: string;
}

/** A JavaScript prompt with helpers around one agent. It evaluates the user's own code. */
export async function runConsole({ agent, config }: ConsoleCommandOptions): Promise<void> {
  const env = withConfig(config);
  const print = (line: string) => process.stdout.write(`${line}\n`);
  const loaded = await loadWithPlugins(env);
  let converse: OpenConversation | null = null;
  let without = '';
  try {
    converse = prepareConversation(loaded.config, agent, env, (line) => process.stderr.write(`${line}\n`));
  } catch (error) {
    if (!(error instanceof ModelSettingsError)) throw error;
    without = `mcp is not there: ${oneLine(error.message)}`;
  }
  const isPerson = process.stdin.isTTY && process.stdout.isTTY;
  const terminal = isPerson ? new PromptTerminal(process.stdin, process.stdout) : null;
  const person = terminal && new PersonAtTerminal(terminal);
  const opened = await openAgent(loaded, env, { agent, ...(person && { person }) });
  try {
    const conversation = converse?.(opened) ?? null;
    print(`Parley console — agent ${opened.name} (${opened.permissions})`);
    print('agent tools schemas prompts t(name, args) q(class, options) count(class, options) schema(class)');
    print(`dispatch(method, params) render_prompt(name, args)${conversation ? ' mcp.ask(question)' : ''}`);
    if (without !== '') print(without);
    const { functions, values } = consoleHelpers({ agent: opened, conversation, print });
    const evaluations = new AwaitedEvaluations();
    const server = start({
      prompt: isPerson ? 'parley> ' : '',
      input: isPerson ? process.stdin : evaluations.paceInput(process.stdin),
      output: process.stdout,
      terminal: isPerson,
      eval: evaluations.evaluate,
      useColors: false,
      writer: showValue,
    });
    terminal?.attach(server);
    // Runs before the prompt's own Ctrl-C handler, which continues to read code.
    server.prependListener('SIGINT', () => person?.giveUp());
    Object.assign(server.context, functions);
    for (const [name, get] of Object.entries(values))
      Object.defineProperty(server.context, name, { get, configurable: true, enumerable: true });
    await new Promise<void>((resolve) => server.once('exit', resolve));
    await evaluations.settle();
  } finally {
    await opened.close();
  }
}

/** Values in Node's format, and answers as text; terminal control characters are removed. */
function showValue(value: unknown): string {
  if (value instanceof Answer) return value.toString();
  return terminalText(inspect(value, { depth: 8, maxStringLength: 10_000 }));
}

interface ConsoleDependencies {
  readonly agent: OpenAgent;
  /** Null: no model is configured. */
  readonly conversation: Conversation | null;
  readonly print: (line: string) => void;
}

type Helper = (...args: never[]) => unknown;

/** The helpers at the prompt of `parley console`. `values` are evaluated at each use of their name. */
interface ConsoleHelpers {
  readonly functions: Readonly<Record<string, Helper>>;
  readonly values: Readonly<Record<string, () => unknown>>;
}

const signal = new AbortController().signal;

function consoleHelpers({ agent, conversation, print }: ConsoleDependencies): ConsoleHelpers {
  const t = async (name: string, args: JsonObject = {}) =>
    toolEnvelope(await agent.tools.call(String(name), asSent(args), { signal }));
  const dispatch = async (method: string, params: JsonObject = {}) => {
    const reply = await agent.tools.dispatch(String(method), asSent(params), { signal });
    const envelope = { jsonrpc: '2.0', id: 1 };
    if ('error' in reply) return { status: reply.status, body: { ...envelope, error: reply.error } };
    if ('result' in reply) return { status: 200, body: { ...envelope, result: reply.result } };
    return { status: 202, body: null };
  };
  const printNames = (names: readonly string[]) => {
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
      tools: async () => printNames((await agent.tools.list(signal)).map(({ name }) => name)),
      schemas: async () => printSchemas(await t('get_all_schemas'), print),
      prompts: async () => {
        const { body } = await dispatch('prompts/list');
        return printNames(namesIn(member(member(body, 'result'), 'prompts')));
      },
      ...(conversation && { mcp: () => conversation }),
    },
  };
}

/** Serialises a value: objects of the prompt have the classes of its own context and are no plain objects elsewhere. */
function asSent(given: unknown): JsonObject {
  const sent: unknown = JSON.parse(JSON.stringify(given ?? {}));
  if (!isJsonObject(sent)) throw new TypeError('arguments are an object');
  return sent;
}

function printSchemas(reply: JsonObject, print: (line: string) => void): unknown {
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

/** Evaluates input of a prompt sequentially; it awaits promises, shows their results and stores them in `_`. */
class AwaitedEvaluations {
  private last: Promise<void> = Promise.resolve();

  readonly evaluate: REPLEval = (code, context, _file, done) => {
    this.last = inTurn(this.last, code, context, done);
  };

  /** Settles when all input is evaluated. */
  async settle(): Promise<void> {
    await turn();
    await this.last;
    await turn();
  }

  /** Lines of a pipe, each passed on when the previous one is evaluated, as with typed input. */
  paceInput(input: Readable): Readable {
    return Readable.from(this.lines(input), { objectMode: false, highWaterMark: 1 });
  }

  private async *lines(input: Readable): AsyncGenerator<string> {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) {
      yield `${line}\n`;
      await this.settle();
    }
  }
}

async function inTurn(
  before: Promise<void>,
  code: string,
  context: Context,
  done: (fault: Error | null, value: unknown) => void,
): Promise<void> {
  await before;
  let value: unknown;
  try {
    value = await evaluate(code, context);
  } catch (error) {
    return done(isUnfinished(error) ? new Recoverable(error) : asError(error), undefined);
  }
  done(null, value);
}

/** An awaited declaration is a variable of the prompt in any case. */
const DECLARATION = /^\s*(?:var|let|const)\s+/;

function evaluate(code: string, context: Context): unknown {
  const run = (text: string): unknown => runInContext(text, context, { filename: 'console' });
  // As at any prompt: code that begins with a brace is an object, when it parses as one.
  const forms = /^\s*\{/.test(code) ? [`(${code})`, code] : [code];
  if (/\bawait\b/.test(code))
    forms.unshift(`(async () => (${code.replace(DECLARATION, '').replace(/;?\s*$/, '')}\n))()`);
  for (const form of forms.slice(0, -1)) {
    try {
      return run(form);
    } catch (error) {
      if (!isSyntaxError(error)) throw error;
    }
  }
  return run(code);
}

/** Includes the SyntaxError class of the prompt's context. */
const isSyntaxError = (error: unknown): error is SyntaxError =>
  (error as { name?: unknown } | null)?.name === 'SyntaxError';

/** Further lines may complete the code. */
const isUnfinished = (error: unknown): error is SyntaxError =>
  isSyntaxError(error) && /^(Unexpected end of input|Unterminated template|missing \))/.test(error.message);

/** Name and message on one line: the stack belongs to this prompt and not to the input. */
function asError(thrown: unknown): Error {
  const { name, message } = Object(thrown) as { name?: unknown; message?: unknown };
  const text =
    typeof message === 'string' ? terminalText(`${String(name)}: ${message}`) : terminalText(String(thrown));
  const error = new Error(text);
  error.stack = text;
  return error;
}
