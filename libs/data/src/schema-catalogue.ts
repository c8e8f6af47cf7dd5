import type { ClassSchema, IndexSchema, SchemaSnapshot } from '#policy';

/** What classes exist and how their fields are typed. */
export abstract class SchemaCatalogue {
  /** A recent snapshot; cheap, because it is cached and refreshed in the background. @throws StoreError */
  abstract snapshot(): Promise<SchemaSnapshot>;
  /**
   * Every index of a class of a snapshot, and which are unique: asked when somebody must know, and kept as long as that snapshot.
   * @throws StoreError rather than leave one out
   */
  abstract indexesOf(schema: ClassSchema): Promise<readonly IndexSchema[]>;
  /** Reads anew at the next call: after a class was created or changed. */
  abstract invalidate(): void;
}

/** A fixed set of class schemas: what every adapter's catalogue answers with. */
export class ClassSchemas implements SchemaSnapshot {
  private readonly classes: ReadonlyMap<string, ClassSchema>;
  private readonly names: readonly string[];

  constructor(schemas: Iterable<ClassSchema>) {
    this.classes = new Map([...schemas].map((schema) => [schema.className, schema]));
    this.names = [...this.classes.keys()].sort();
  }

  /** Undefined: no such class. */
  get(className: string): ClassSchema | undefined {
    return this.classes.get(className);
  }

  /** Sorted. */
  classNames(): readonly string[] {
    return this.names;
  }
}
