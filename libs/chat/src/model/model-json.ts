import { randomUUID } from 'node:crypto';
import { cutText, markInexact, readJson, isJsonObject, type JsonObject } from '#core';
import { LanguageModelError, type RequestedCall, type StopReason } from './language-model.js';

/** Invalid payloads after which a stream is refused. */
const MAX_INVALID = 100;
/** Maximum depth of a payload. */
const MAX_NESTING = 64;

/** Parses the payloads of one stream. Single payloads that are not JSON objects are skipped. */
export class EventJson {
  private invalid = 0;

  /** @returns null for a skipped payload @throws LanguageModelError after too many */
  read(data: string): JsonObject | null {
    const value = parseJson(data);
    if (isJsonObject(value)) return value;
    this.invalid += 1;
    if (this.invalid > MAX_INVALID)
      throw new LanguageModelError('malformed', 'the answer of the model is no stream of JSON objects');
    return null;
  }
}

/** @throws LanguageModelError */
export function parseObject(text: string, label: string): JsonObject {
  const value = parseJson(text);
  if (!isJsonObject(value))
    throw new LanguageModelError('malformed', `${label} failed: the answer is no JSON object`);
  return value;
}

/** Of a payload, a number that a double does not hold is its text. */
function parseJson(text: string): unknown {
  return readJson(text, MAX_NESTING).value;
}

/** Of providers and of servers with their protocols, in lower case. Empty: none is given. */
const WHOLE = new Set(
  ' stop end_turn stop_sequence eos eos_token tool_calls tool_use function_call'.split(' '),
);
const WITHHELD = new Set(['content_filter', 'refusal']);

/** Why an answer ended. One that ended for a reason that is not known may lack its end. */
export function readStop(given: string | null, calls: readonly RequestedCall[]): StopReason {
  const reason = (given ?? '').toLowerCase();
  if (WITHHELD.has(reason)) return 'withheld';
  if (!WHOLE.has(reason)) return 'cut-off';
  return calls.length > 0 ? 'tools' : 'done';
}

/** Maximum plausible token count. */
const MOST_TOKENS = 1e9;

export function readCount(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= MOST_TOKENS ? Math.floor(value) : 0;
}

export const toText = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Maximum depth of arguments: no tool takes more, and the next request must serialise them. */
const MAX_ARGUMENT_NESTING = 32;

/**
 * Parses the arguments of a call: text, or nothing. A number that a double does not hold marks them, and the call is refused.
 * @returns null when they are not a JSON object
 */
function readCallArguments(written: string): JsonObject | null {
  if (written.trim() === '') return {};
  const reading = readJson(written, MAX_ARGUMENT_NESTING);
  const { value } = reading;
  if (!isJsonObject(value)) return null;
  if (!reading.ok) markInexact(value, reading.why);
  return value;
}

interface PartialCall {
  id: string;
  name: string;
  text: string;
}

/** Maximum number of calls in one turn. */
const MAX_CALLS = 64;
const MAX_NAME = 256;

/** Assembles the calls of one turn from streamed pieces. */
export class CallCollector {
  private readonly partial = new Map<string | number, PartialCall>();

  get size(): number {
    return this.partial.size;
  }

  /** @throws LanguageModelError when there are too many */
  at(place: string | number): PartialCall {
    let call = this.partial.get(place);
    if (!call) {
      if (this.partial.size >= MAX_CALLS)
        throw new LanguageModelError('malformed', `the model asked for more than ${MAX_CALLS} tools at once`);
      call = { id: '', name: '', text: '' };
      this.partial.set(place, call);
    }
    return call;
  }

  /** Calls with unique ids, so that each result belongs to one call. */
  finishCalls(): RequestedCall[] {
    const ids = new Set<string>();
    return [...this.partial.values()].map(({ id, name, text }) => {
      const own = id === '' || id.length > MAX_NAME || ids.has(id) ? `call_${randomUUID()}` : id;
      ids.add(own);
      return { id: own, name: cutText(name, MAX_NAME), args: readCallArguments(text) };
    });
  }
}
