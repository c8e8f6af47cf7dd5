/** A BSON document: insertion order is field order, every value a JS value or a class of `bson`. */
export type Document = Record<string, unknown>;

/** The `bson` class of a value ("ObjectId", "Long", …); a stored field of that name is no class. */
export function bsonTag(value: object): string | undefined {
  const tag = (value as { _bsontype?: unknown })._bsontype;
  return typeof tag === 'string' && !Object.hasOwn(value, '_bsontype') ? tag : undefined;
}

/** True for an embedded document, false for arrays, dates and the classes of `bson`. */
export function isDocument(value: unknown): value is Document {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Date) &&
    !(value instanceof Uint8Array) &&
    bsonTag(value) === undefined
  );
}

/** Own fields only: `constructor` or `__proto__` of the JS object never answer for a missing field. */
export function getField(doc: Document, name: string): unknown {
  return Object.hasOwn(doc, name) ? doc[name] : undefined;
}

/** Writes a field as data, also when it is called `__proto__`. */
export function setField(doc: Document, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(doc, name, { value, writable: true, enumerable: true, configurable: true });
  } else doc[name] = value;
}

/** The first field name, which decides whether an object holds operators. */
export function firstKey(doc: Document): string | undefined {
  for (const key in doc) if (Object.hasOwn(doc, key)) return key;
  return undefined;
}

/** The same fields with `_id` leading, as the server stores and returns documents. */
export function idFirst(doc: Document): Document {
  if (!Object.hasOwn(doc, '_id') || firstKey(doc) === '_id') return doc;
  const { _id, ...rest } = doc;
  return { _id, ...rest };
}
