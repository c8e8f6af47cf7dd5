import { mongoError, type MongoError } from '../errors.js';

/** MongoDB's dates are 64-bit; JavaScript's end here. */
const mostMilliseconds = 8.64e15;

const overflow = (): MongoError => mongoError(15, 'date overflow');

/** The date of a number of milliseconds since 1970; every date that is computed or received is made here. Errors: 15, or that of `tooFar`. */
export function createDate(milliseconds: number, tooFar: () => MongoError = overflow): Date {
  if (!(Math.abs(milliseconds) <= mostMilliseconds)) throw tooFar();
  return new Date(milliseconds);
}
