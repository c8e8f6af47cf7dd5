import { type Binary, Decimal128 } from 'bson';
import { binaryBytes, compareValues } from './value-order.js';
import { isDocument } from './document.js';
import { typeNumber } from './type-name.js';

/** True when two values are the same bytes on the wire: same types, same field order. */
export function identical(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeNumber(a) !== typeNumber(b)) return false;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => identical(item, b[i]));
  }
  if (isDocument(a) && isDocument(b)) {
    const keys = Object.keys(a);
    const others = Object.keys(b);
    return (
      keys.length === others.length && keys.every((key, i) => key === others[i] && identical(a[key], b[key]))
    );
  }
  if (typeof a === 'number' || typeof b === 'number')
    return typeof a === typeof b ? false : compareValues(a, b) === 0;
  const type = typeNumber(a);
  // Decimal 1.0 and 1.00 compare equal but are stored differently.
  if (a instanceof Decimal128 && b instanceof Decimal128) return a.toString() === b.toString();
  if (type === 5) {
    const [x, y] = [a as Binary | Uint8Array, b as Binary | Uint8Array];
    return compareValues(x, y) === 0 && binaryBytes(x).length === binaryBytes(y).length;
  }
  return compareValues(a, b) === 0;
}
