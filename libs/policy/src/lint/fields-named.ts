import type { FieldNames } from '../model/field-names.js';
import { isPlainObject } from '../model/plain-object.js';

/** The fields that a constraint names of its own class, as wire paths. */
export function fieldsNamed(constraint: unknown, names: FieldNames): string[] {
  if (!isPlainObject(constraint)) return [];
  return Object.entries(constraint).flatMap(([key, value]) => {
    if (!key.startsWith('$')) return [names.wirePath(key)];
    return Array.isArray(value) ? value.flatMap((branch) => fieldsNamed(branch, names)) : [];
  });
}
