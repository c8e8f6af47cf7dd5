import { isJsonObject, type JsonObject } from '#dispatcher';
import { isNestedDeeperThan } from './json-nesting.js';

/** Levels: no tool takes more, and what is nested without end cannot be written into the next request. */
const MAX_NESTING = 32;

/** What a model wrote as arguments: text, nothing, or an object already. @returns null when it is no JSON object */
export function readCallArguments(written: unknown): JsonObject | null {
  if (written === undefined || written === null) return {};
  if (isJsonObject(written)) return written;
  if (typeof written !== 'string') return null;
  if (written.trim() === '') return {};
  if (isNestedDeeperThan(MAX_NESTING, written)) return null;
  try {
    const value: unknown = JSON.parse(written);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}
