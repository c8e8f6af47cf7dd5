export type PlainObject = Readonly<Record<string, unknown>>;

/** An object as JSON makes it: no class instance, no array, not null. */
export function isPlainObject(value: unknown): value is PlainObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
