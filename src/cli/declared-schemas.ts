import { type AgentShape, DEFAULT_FILTER, type FilterConstraint } from '#agent';
import type { LoadedConfig } from '#config';
import { ClassSchemas, SchemaCatalogue } from '#data';
import {
  ALWAYS_KEEP,
  type ClassSchema,
  type DeclaredClass,
  FieldNames,
  type FieldSchema,
  type IndexSchema,
  missingColumns,
  rootOf,
  type SchemaSnapshot,
} from '#policy';

/** The classes and fields of the database and those that configurations name, so that what does not exist yet is compared too. */
export class DeclaredSchemas extends SchemaCatalogue {
  private merged: Promise<SchemaSnapshot> | undefined;

  constructor(
    private readonly read: SchemaCatalogue,
    private readonly compared: readonly Pick<LoadedConfig, 'policy' | 'agents'>[],
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
    const declared = this.compared.flatMap(({ policy }) => [...policy.classes.values()]);
    const filtered = this.compared.flatMap(({ agents }) => [...agents.values()].flatMap(filtersOf));
    const names = new Set([...known.classNames(), ...declared.map(({ className }) => className)]);
    const fields = new Map(
      [...names].map((className) => {
        const columns = new Map<string, FieldSchema>(known.get(className)?.fields);
        for (const name of ALWAYS_KEEP) added(name, columns);
        for (const policy of declared)
          if (policy.className === className)
            for (const name of namesOf(policy)) added(name, columns, policy.aliases);
        return [className, columns] as const;
      }),
    );
    for (const { policy } of this.compared) {
      const { classes } = policy;
      const schemas = schemasOf(fields, known);
      const own = [...classes.values()].flatMap(({ className, canonicalFilter }) =>
        canonicalFilter ? [[className, canonicalFilter] as const] : [],
      );
      for (const [className, constraint] of [...own, ...filtered]) {
        const targets = className === DEFAULT_FILTER ? [...names] : [className];
        for (const target of targets)
          for (const missing of missingColumns(constraint, target, { classes, schemas }).missing)
            added(missing.written, fields.get(missing.className), classes.get(missing.className)?.aliases);
      }
    }
    return schemasOf(fields, known);
  }
}

type Columns = Map<string, FieldSchema>;

/** Under the name that it most likely has, unless it is there under another. */
function added(written: string, columns: Columns | undefined, aliases?: ReadonlyMap<string, string>): void {
  const root = rootOf(written);
  if (columns && new FieldNames(aliases, columns).column(root) === null)
    columns.set(new FieldNames(aliases).wireName(root), { type: 'String' });
}

function schemasOf(fields: ReadonlyMap<string, Columns>, known: SchemaSnapshot): SchemaSnapshot {
  return new ClassSchemas(
    [...fields].map(([className, columns]) => ({
      className,
      indexes: known.get(className)?.indexes ?? [],
      classLevelPermissions: known.get(className)?.classLevelPermissions ?? null,
      fields: columns,
    })),
  );
}

function namesOf({
  fields,
  joinFields,
  largeFields,
  masks,
  tenantScope,
  searchable,
  properties,
}: DeclaredClass): string[] {
  return [
    ...(fields ?? []),
    ...(joinFields ?? []),
    ...largeFields,
    ...masks.keys(),
    ...(tenantScope ? [tenantScope.field] : []),
    ...(searchable ? [searchable.field, ...searchable.filterFields, ...(searchable.textFields ?? [])] : []),
    ...properties.keys(),
  ];
}

function filtersOf({ filters }: AgentShape): (readonly [string, FilterConstraint])[] {
  return [...filters].flatMap(([className, entry]) =>
    typeof entry === 'function' ? [] : [[className, entry] as const],
  );
}
