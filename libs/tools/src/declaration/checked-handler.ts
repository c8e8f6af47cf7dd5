import { ERROR_CODES, type ErrorCode, type Refusal, Refused, refusals } from '#core';
import { ToolContent, type ToolHandler } from '../tool.js';
import type { SchemaReader, ValueReader } from '../json-schema.js';
import { schemaReader } from './value-schema.js';
import type { ToolRegistration } from './tool.decorator.js';
import { compileGivenForms } from '../arguments/given-forms.js';
import { ToolDeclarationError } from './tool-declaration.js';

const MAX_FAULTS = 5;
const MAX_FAULT = 200;
/** Maximum characters of the failure text that a handler returns. */
const MAX_FAILURE_TEXT = 2000;

/**
 * A tool returned a result that its schema or JSON does not allow. The operator's log gets the reason; the agent
 * receives only that the tool failed.
 */
class ResultError extends Error {
  override readonly name = 'ResultFault';
}

/**
 * An application's handler between its two schemas: it receives only valid arguments, as the schema reads them, and
 * returns only results that its result schema allows. Parley's own tools read their arguments themselves.
 * @throws ToolDeclarationError when a schema cannot be compiled
 */
export function createCheckedHandler(registration: ToolRegistration): ToolHandler {
  const { definition, handler } = registration;
  const read = compileReader(
    definition.name,
    'input',
    registration.input ?? schemaReader(definition.inputSchema, 'input'),
  );
  const toForms = compileGivenForms(definition.inputSchema);
  const described = definition.outputSchema && schemaReader(definition.outputSchema, 'output');
  const output = registration.output ?? described;
  const check = output && compileReader(definition.name, 'output', output);
  return async (args, call) => {
    const given = await read(toForms(args ?? {}));
    if (!given.ok) throw new Refused(refusals.invalidArgument(joinErrors(given.issues)));
    const result = await handler(given.value as Readonly<Record<string, unknown>>, call);
    const failure = readFailure(result);
    if (failure !== null) throw new Refused(failure);
    const error = notJson(result instanceof ToolContent ? result.data : result);
    if (error !== null) throw new ResultError(error);
    return check ? checkResult(result, check) : result;
  };
}

/**
 * A handler may return `{ success: false, error, error_code }` instead of throwing (docs/guide/writing-tools.md); null:
 * `result` is no failure. An `error_code` outside `ERROR_CODES` counts as `internal_error`.
 */
function readFailure(result: unknown): Refusal | null {
  if (result === null || typeof result !== 'object' || result instanceof ToolContent) return null;
  const { success, error, error_code: code } = result as Readonly<Record<string, unknown>>;
  if (success !== false || typeof error !== 'string') return null;
  const known = ERROR_CODES.find((one): one is ErrorCode => one === code) ?? 'internal_error';
  return {
    code: known,
    gate: 'tool',
    message: error.slice(0, MAX_FAILURE_TEXT),
    ...(known === 'security_blocked' && { opaque: true }),
  };
}

function compileReader(tool: string, side: string, reader: SchemaReader): ValueReader {
  try {
    return reader.compile();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new ToolDeclarationError(tool, `${side} ${error.message}`);
  }
}

async function checkResult(result: unknown, check: ValueReader): Promise<unknown> {
  if (result instanceof ToolContent) {
    if (result.data !== undefined) await asSent(result.data, check);
    return result;
  }
  return asSent(result, check);
}

/** Validated in serialised form: a Date is a string there. */
async function asSent(result: unknown, check: ValueReader): Promise<unknown> {
  const read = await check(JSON.parse(JSON.stringify(result ?? null)));
  if (!read.ok)
    throw new ResultError(`the result does not fit the output schema: ${joinErrors(read.issues)}`);
  return read.value;
}

function joinErrors(errors: readonly string[]): string {
  const described = errors
    .slice(0, MAX_FAULTS)
    .map((error) => error.replaceAll(/\s+/g, ' ').slice(0, MAX_FAULT));
  const more = errors.length - described.length;
  return `${described.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

const place = (path: string, key: string) => (path === '' ? key : `${path}.${key}`);

/**
 * Why a result of an application's tool has no JSON form, with the path, or null. It covers only values that would
 * cause an error without a path, or silently become `{}`; values with a `toJSON` of their own are accepted.
 */
export function notJson(result: unknown, path = '', above: readonly object[] = []): string | null {
  const at = path === '' ? 'the result' : `'${path}' of the result`;
  if (typeof result === 'bigint') return `${at} is a bigint: make it a string or a number`;
  if (result === null || typeof result !== 'object' || hasWords(result)) return null;
  if (isPromise(result)) {
    // The promise was never awaited, and its rejection must not end the process.
    result.then(undefined, () => undefined);
    return `${at} is a promise: an await is missing`;
  }
  if (result instanceof Map || result instanceof Set) {
    return `${at} is a ${result instanceof Map ? 'Map' : 'Set'}, which JSON has no word for: make it an object or an array`;
  }
  if (above.includes(result)) return `${at} contains itself`;
  const within = [...above, result];
  let first: string | null = null;
  for (const [key, value] of Object.entries(result)) {
    // Continues after the first error, because the rejection of a second promise must be handled as well.
    const error = notJson(value, place(path, key), within);
    first ??= error;
  }
  return first;
}

const hasWords = (value: object) => 'toJSON' in value && typeof value.toJSON === 'function';
const isPromise = (value: object): value is PromiseLike<unknown> =>
  'then' in value && typeof value.then === 'function';
