import { getField, isDocument, setField, type Document } from './document.js';

/** A copy with a value at a dotted path; what stands in the way and is no document gives way to one. */
export function withNested(doc: Document, parts: readonly string[], value: unknown, depth = 0): Document {
  const part = parts[depth] as string;
  const copy = { ...doc };
  if (depth === parts.length - 1) {
    if (value === undefined) delete copy[part];
    else setField(copy, part, value);
    return copy;
  }
  const inner = getField(doc, part);
  setField(copy, part, withNested(isDocument(inner) ? inner : {}, parts, value, depth + 1));
  return copy;
}

/** The value at a dotted path through documents only. */
export function readNested(doc: unknown, parts: readonly string[]): unknown {
  let current = doc;
  for (const part of parts) {
    if (!isDocument(current)) return undefined;
    current = getField(current, part);
  }
  return current;
}
