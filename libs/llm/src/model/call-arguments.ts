import { isJsonObject, type JsonObject } from '#dispatcher';

/** What a model wrote as arguments: text, nothing, or an object already. @returns null when it is no JSON object */
export function readCallArguments(written: unknown): JsonObject | null {
  if (written === undefined || written === null) return {};
  if (isJsonObject(written)) return written;
  if (typeof written !== 'string') return null;
  if (written.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(written);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}
