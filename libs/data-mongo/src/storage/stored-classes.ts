import { ClassSchemas, type OperationContext, type SchemaCatalogue, StoreError } from '#data';
import type { BSONSerializeOptions } from 'mongodb';
import type { ClassSchema, SchemaSnapshot } from '#policy';
import type { ClassStorage } from './class-storage.js';
import { ParseStorage } from './parse-storage.js';
import { readLayout, PlainStorage } from './plain-storage.js';

/** The classes of a database, and which further names may be used for classes that do not exist yet. */
export class StoredSchemas extends ClassSchemas {
  constructor(
    schemas: Iterable<ClassSchema>,
    readonly admits: (className: string) => boolean,
    /** Classes whose database cannot be reached. */
    readonly away: ReadonlySet<string> = new Set(),
    /** Classes that are read for each tenant, and are away without one. */
    private readonly ofTenants: ReadonlySet<string> = new Set(),
  ) {
    super(schemas);
  }

  isAway(className: string): boolean {
    return this.away.has(className) || this.ofTenants.has(className);
  }
}

/** Snapshots of several tenants share the classes of all. */
const storages = new WeakMap<ClassSchema, ClassStorage>();

export function createStorage(schema: ClassSchema): ClassStorage {
  const known = storages.get(schema);
  if (known) return known;
  const layout = readLayout(schema);
  const made = layout ? new PlainStorage(schema, layout) : new ParseStorage(schema.className, schema);
  storages.set(schema, made);
  return made;
}

/** How every class of one schema snapshot is stored, computed once for each. */
export class StoredClasses {
  private static readonly bySnapshot = new WeakMap<SchemaSnapshot, StoredClasses>();
  private readonly classes = new Map<string, ClassStorage>();
  /** Options for reading documents that may contain rows of any of these classes. */
  readonly bson: BSONSerializeOptions;

  private constructor(private readonly schemas: SchemaSnapshot) {
    this.bson = Object.assign({}, ...schemas.classNames().map((className) => this.find(className)?.bson));
  }

  static of(schemas: SchemaSnapshot): StoredClasses {
    const known = StoredClasses.bySnapshot.get(schemas);
    if (known) return known;
    const made = new StoredClasses(schemas);
    StoredClasses.bySnapshot.set(schemas, made);
    return made;
  }

  /** The classes of a catalogue as the caller of an operation sees them. @throws StoreError */
  static async read(
    catalogue: SchemaCatalogue,
    { tenant }: Pick<OperationContext, 'tenant'>,
  ): Promise<StoredClasses> {
    return StoredClasses.of(await catalogue.forTenant(tenant).snapshot());
  }

  /** @throws StoreError `invalid_query` for a name that is no class and may not become one, `unavailable` while its database is away */
  storage(className: string): ClassStorage {
    const storage = this.find(className);
    if (storage) return storage;
    if (this.schemas.isAway?.(className)) throw new StoreError('unavailable');
    throw new StoreError('invalid_query', { cause: new Error(`no class ${className}`) });
  }

  find(className: string): ClassStorage | undefined {
    const known = this.classes.get(className);
    if (known) return known;
    const schema = this.schemas.get(className);
    // Only declared classes are cached: a caller may name any number of others.
    if (!schema) return this.mayBecomeClass(className) ? new ParseStorage(className) : undefined;
    const storage = createStorage(schema);
    this.classes.set(className, storage);
    return storage;
  }

  private mayBecomeClass(className: string): boolean {
    return !(this.schemas instanceof StoredSchemas) || this.schemas.admits(className);
  }
}
