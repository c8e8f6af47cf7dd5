import type { SchemaSnapshot } from '#policy';
import { StorageNames } from './storage-names.js';

/** The stored names of every class of one schema snapshot, worked out once each. */
export class StoredClasses {
  private static readonly bySnapshot = new WeakMap<SchemaSnapshot, StoredClasses>();
  private readonly classes = new Map<string, StorageNames>();

  private constructor(private readonly schemas: SchemaSnapshot) {}

  static of(schemas: SchemaSnapshot): StoredClasses {
    const known = StoredClasses.bySnapshot.get(schemas);
    if (known) return known;
    const made = new StoredClasses(schemas);
    StoredClasses.bySnapshot.set(schemas, made);
    return made;
  }

  names(className: string): StorageNames {
    const schema = this.schemas.get(className);
    const known = this.classes.get(className);
    if (known) return known;
    const names = new StorageNames(className, schema);
    // Only declared classes are kept: a caller may name any number of others.
    if (schema) this.classes.set(className, names);
    return names;
  }
}
