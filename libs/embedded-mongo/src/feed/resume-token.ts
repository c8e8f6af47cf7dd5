import { Timestamp } from 'bson';
import { isDocument, type Document } from '../bson/document.js';
import { mongoError } from '../errors.js';

const hex = (value: number): string => value.toString(16).toUpperCase().padStart(8, '0');

/** A place in the change log: cluster time and position within its group, as text that sorts like the log. */
export const logKey = (time: Timestamp, position: number): string =>
  hex(time.t) + hex(time.i) + hex(position);

/** The place after everything of this cluster time. */
export const toEndKey = (time: Timestamp): string => logKey(time, 0xffffffff);

/** The place before everything of this cluster time. */
export const toStartKey = (time: Timestamp): string => logKey(time, 0);

const PREFIX = '82';
const EVENT = '00';
const INVALIDATE = '01';

export function createToken(key: string, invalidate = false): Document {
  return { _data: PREFIX + key + (invalidate ? INVALIDATE : EVENT) };
}

/** Errors: 50811 when the token was not made by this server. */
export function readToken(token: unknown): { key: string; invalidate: boolean } {
  const data = isDocument(token) ? token['_data'] : undefined;
  const match = typeof data === 'string' ? /^82([0-9A-F]{24})(00|01)$/.exec(data) : null;
  if (!match?.[1]) throw mongoError(50811, 'Attempted to decode a resume token that is not valid');
  return { key: match[1], invalidate: match[2] === INVALIDATE };
}
