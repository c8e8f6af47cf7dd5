import { cutText, readErrorCode, type Refusal, Refused, refusals, refuse } from '#core';
import { ToolContent, type ToolHandler } from '../tool.js';
import type { SchemaReader, ValueReader } from '../json-schema.js';
import { schemaReader } from './value-schema.js';
import type { ToolRegistration } from './tool.decorator.js';
import { compileGivenForms } from '../arguments/argument.decorators.js';
import { ToolDeclarationError } from './tool-declaration.js';

const MAX_FAULTS = 5;
const MAX_FAULT = 200;
/** Maximum characters of the failure text that a handler returns. */
const MAX_FAILURE_TEXT = 2000;
/** Maximum characters of the JSON of its details. */
const MAX_DETAILS = 8192;

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
    if (!given.ok) throw refuse.invalidArgument(joinErrors(given.issues));
    const result = await handler(given.value as Readonly<Record<string, unknown>>, call);
    const returned = readReturned(definition.name, result);
    if ('failure' in returned) throw new Refused(returned.failure);
    const { data } = returned;
    const error = notJson(data instanceof ToolContent ? data.data : data);
    if (error !== null) throw new ResultError(error);
    return check ? checkResult(data, check) : data;
  };
}

const ENVELOPE: readonly string[] = ['success', 'data', 'error', 'error_code', 'cancelled', 'details'];

/** What a handler returned: its data, or why it failed. */
type Returned = { readonly data: unknown } | { readonly failure: Refusal };

/**
 * A handler may return an envelope (docs/guide/writing-tools.md): an object with `success` and members of the envelope alone.
 * `{ success: true, data }` is its data, `{ success: false, … }` a failure. Any other value is data.
 * @throws ResultError for an envelope whose members are not what they should be
 */
function readReturned(tool: string, result: unknown): Returned {
  if (!isEnvelope(result)) return { data: result };
  if (result['success'] === true) return { data: Object.hasOwn(result, 'data') ? result['data'] : result };
  const { error, error_code: named, cancelled, details } = result;
  const message = typeof error === 'string' && error !== '' ? cutText(error, MAX_FAILURE_TEXT) : undefined;
  if (cancelled === true) return { failure: { ...refusals.cancelled(), ...(message && { message }) } };
  if (error !== undefined && error !== null && message === undefined)
    throw new ResultError(`'error' of a failure is no text`);
  const code = readErrorCode(named) ?? 'internal_error';
  return {
    failure: {
      code,
      gate: 'tool',
      message: message ?? `Tool '${tool}' failed`,
      ...(details !== undefined && details !== null && { applicationDetails: readDetails(details) }),
      ...(code === 'security_blocked' && { opaque: true }),
    },
  };
}

/** What says that it failed, and why, is a failure whatever else it has: nothing else of it is sent. */
function isEnvelope(result: unknown): result is Readonly<Record<string, unknown>> {
  if (result === null || typeof result !== 'object' || result instanceof ToolContent) return false;
  const { success, error } = result as Readonly<Record<string, unknown>>;
  if (success === false && typeof error === 'string') return true;
  return typeof success === 'boolean' && Object.keys(result).every((name) => ENVELOPE.includes(name));
}

/** @throws ResultError */
function readDetails(details: unknown): Readonly<Record<string, unknown>> {
  const error = notJson(details, 'details');
  if (error !== null) throw new ResultError(error);
  if (typeof details !== 'object' || Array.isArray(details))
    throw new ResultError(`'details' of a failure is no object`);
  const text = JSON.stringify(details);
  if (text.length > MAX_DETAILS)
    throw new ResultError(`'details' of a failure has more than ${MAX_DETAILS} characters of JSON`);
  return JSON.parse(text) as Readonly<Record<string, unknown>>;
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
    .map((error) => cutText(error.replaceAll(/\s+/g, ' '), MAX_FAULT));
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
