import type { SchemaSnapshot } from '#policy';
import type { ClassStorage } from './class-storage.js';
import { ParseStorage } from './parse-storage.js';

/** How every class of one schema snapshot is stored, computed once for each. */
export class StoredClasses {
  private static readonly bySnapshot = new WeakMap<SchemaSnapshot, StoredClasses>();
  private readonly classes = new Map<string, ClassStorage>();

  private constructor(private readonly schemas: SchemaSnapshot) {}

  static of(schemas: SchemaSnapshot): StoredClasses {
    const known = StoredClasses.bySnapshot.get(schemas);
    if (known) return known;
    const made = new StoredClasses(schemas);
    StoredClasses.bySnapshot.set(schemas, made);
    return made;
  }

  storage(className: string): ClassStorage {
    const known = this.classes.get(className);
    if (known) return known;
    const schema = this.schemas.get(className);
    const storage = new ParseStorage(className, schema);
    // Only declared classes are cached: a caller may name any number of others.
    if (schema) this.classes.set(className, storage);
    return storage;
  }
}
