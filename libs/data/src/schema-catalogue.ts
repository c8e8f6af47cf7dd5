import type { ClassSchema, SchemaSnapshot } from '#policy';

/** What classes exist and how their fields are typed. */
export abstract class SchemaCatalogue {
  /** A recent snapshot; cheap, because it is cached and refreshed in the background. @throws StoreError */
  abstract snapshot(): Promise<SchemaSnapshot>;
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

  get(className: string): ClassSchema | undefined {
    return this.classes.get(className);
  }

  classNames(): readonly string[] {
    return this.names;
  }
}
