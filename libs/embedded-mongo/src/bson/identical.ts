import { encodeDocument } from '../wire/encode.js';
import { isDocument } from './document.js';

/** True when two values are the same bytes on the wire: same types, same field order. */
export function identical(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (isDocument(a) && isDocument(b)) {
    const names = Object.keys(b);
    return (
      Object.keys(a).length === names.length &&
      Object.keys(a).every((name, i) => name === names[i] && identical(a[name], b[name]))
    );
  }
  return encodeDocument({ a }).equals(encodeDocument({ a: b }));
}
