import { Timestamp } from 'bson';
import type { Document } from './document.js';

let last = 0n;

/** A time after every one that was given before. */
function nextTimestamp(): Timestamp {
  const now = BigInt(Math.floor(Date.now() / 1000)) << 32n;
  last = now > last ? now + 1n : last + 1n;
  return new Timestamp(last);
}

/** A stored document as MongoDB keeps it: a field that is `Timestamp(0, 0)`, not `_id`, becomes the time of the server. */
export function withServerTimes(document: Document): Document {
  const empty = Object.keys(document).filter((key) => key !== '_id' && isEmpty(document[key]));
  return empty.length === 0
    ? document
    : { ...document, ...Object.fromEntries(empty.map((key) => [key, nextTimestamp()])) };
}

const isEmpty = (value: unknown): boolean => value instanceof Timestamp && value.isZero();
