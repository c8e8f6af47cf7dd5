/**
 * Member names that are more than data to what handles them: the language takes `__proto__` for an object's prototype, the
 * database driver takes an object with `_bsontype` for a value of its own, code included.
 */
const MAGIC_NAMES: ReadonlySet<string> = new Set(['__proto__', '_bsontype']);

export function isMagicName(segment: string): boolean {
  return MAGIC_NAMES.has(segment);
}
