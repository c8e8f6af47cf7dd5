import { Timestamp } from 'bson';
import { mongoError, type MongoError } from '../errors.js';
import type { Document } from './document.js';

/** MongoDB's dates are 64-bit; JavaScript's end here. */
const mostMilliseconds = 8.64e15;

const overflow = (): MongoError => mongoError(15, 'date overflow');

/** The date of a number of milliseconds since 1970; every date that is computed or received is made here. Errors: 15, or that of `tooFar`. */
export function createDate(milliseconds: number, tooFar: () => MongoError = overflow): Date {
  if (!(Math.abs(milliseconds) <= mostMilliseconds)) throw tooFar();
  return new Date(milliseconds);
}

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
