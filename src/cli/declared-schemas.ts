import { ClassSchemas, SchemaCatalogue } from '#data';
import {
  ALWAYS_KEEP,
  type ClassPolicy,
  type ClassSchema,
  type FieldSchema,
  type IndexSchema,
  type Policy,
  type SchemaSnapshot,
} from '#policy';

/** The classes and fields of the database and those that policies name, so that what does not exist yet is compared too. */
export class DeclaredSchemas extends SchemaCatalogue {
  private merged: Promise<SchemaSnapshot> | undefined;

  constructor(
    private readonly read: SchemaCatalogue,
    private readonly policies: readonly Policy[],
  ) {
    super();
  }

  snapshot(): Promise<SchemaSnapshot> {
    return (this.merged ??= this.merge());
  }

  async indexesOf({ className, indexes }: ClassSchema): Promise<readonly IndexSchema[]> {
    const known = (await this.read.snapshot()).get(className);
    return known ? this.read.indexesOf(known) : indexes;
  }

  invalidate(): void {
    this.merged = undefined;
    this.read.invalidate();
  }

  private async merge(): Promise<SchemaSnapshot> {
    const known = await this.read.snapshot();
    const declared = this.policies.flatMap(({ classes }) => [...classes.values()]);
    const names = new Set([...known.classNames(), ...declared.map(({ className }) => className)]);
    return new ClassSchemas(
      [...names].map((className) => {
        const schema = known.get(className);
        const fields = new Map<string, FieldSchema>(schema?.fields);
        const own = declared.filter((policy) => policy.className === className);
        for (const name of [...ALWAYS_KEEP, ...own.flatMap(fieldsOf)])
          if (!fields.has(name)) fields.set(name, { type: 'String' });
        return {
          className,
          indexes: schema?.indexes ?? [],
          classLevelPermissions: schema?.classLevelPermissions ?? null,
          fields,
        };
      }),
    );
  }
}

function fieldsOf({ fields, tenantScope, properties }: ClassPolicy): string[] {
  return [...(fields ?? []), ...(tenantScope ? [tenantScope.field] : []), ...properties.keys()];
}
