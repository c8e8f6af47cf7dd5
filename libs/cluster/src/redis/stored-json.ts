import type { BusMessage } from '../message-bus.js';

/** What Redis holds may have been written by anything: only a JSON object is one. */
export function parseStoredObject(text: unknown): BusMessage | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' && !Array.isArray(value)
      ? (value as BusMessage)
      : undefined;
  } catch {
    return undefined;
  }
}
