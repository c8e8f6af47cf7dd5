import { EJSON } from 'bson';
import { binaryBytes, compareValues } from './value-order.js';
import { isDocument } from './document.js';
import { typeNumber } from './type-name.js';
import type { Binary } from 'bson';

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
  if (type === 19) return String(a) === String(b);
  if (type === 5) {
    const [x, y] = [a as Binary | Uint8Array, b as Binary | Uint8Array];
    return compareValues(x, y) === 0 && binaryBytes(x).length === binaryBytes(y).length;
  }
  return compareValues(a, b) === 0;
}

/** How a value reads inside an error text. */
export function printValue(value: unknown): string {
  if (value === undefined) return 'missing';
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[ ${value.map(printValue).join(', ')} ]`;
  if (isDocument(value)) {
    const fields = Object.keys(value).map((key) => `${key}: ${printValue(value[key])}`);
    return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
  }
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'object' && value !== null) return printObject(value);
  return String(value);
}

function printObject(value: object): string {
  switch (typeNumber(value)) {
    case 7:
      return `ObjectId('${String(value)}')`;
    case 9:
      return `new Date(${Number(value)})`;
    case 1:
    case 18:
      return String(value);
    case 19:
      return `${String(value)}`;
    default:
      return EJSON.stringify(value as never);
  }
}
