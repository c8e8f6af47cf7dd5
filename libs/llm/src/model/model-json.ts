import { isJsonObject, type JsonObject } from '#dispatcher';
import { isNestedDeeperThan } from './json-nesting.js';
import { LanguageModelError } from './model-error.js';

/** Lines of a stream that may be nonsense before the stream as a whole is. */
const MAX_NONSENSE = 100;
/** Levels of one payload. */
const MAX_NESTING = 64;

/** Reads the payloads of one stream; single ones that are no JSON objects are passed over. */
export class EventJson {
  private nonsense = 0;

  /** @returns null for what is passed over @throws LanguageModelError when there is too much of it */
  read(data: string): JsonObject | null {
    const value = parsed(data);
    if (isJsonObject(value)) return value;
    this.nonsense += 1;
    if (this.nonsense > MAX_NONSENSE)
      throw new LanguageModelError('malformed', 'the answer of the model is no stream of JSON objects');
    return null;
  }
}

/** @throws LanguageModelError */
export function objectOf(text: string, label: string): JsonObject {
  const value = parsed(text);
  if (!isJsonObject(value))
    throw new LanguageModelError('malformed', `${label} failed: the answer is no JSON object`);
  return value;
}

function parsed(text: string): unknown {
  if (isNestedDeeperThan(MAX_NESTING, text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Tokens that an answer can have counted: more is no count. */
const MOST_TOKENS = 1e9;

export function countOf(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= MOST_TOKENS ? Math.floor(value) : 0;
}

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
