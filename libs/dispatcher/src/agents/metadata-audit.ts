import { Inject, Injectable } from '@nestjs/common';
import { isSystemClassName } from '#core';
import { SchemaCatalogue } from '#data';
import { ALWAYS_KEEP, BoundPolicy, type ClassPolicy, type ClassSchema, Policies, type Policy } from '#policy';

/** Metadata that is missing or wrong for the classes that agents may see. The audit reports and never enforces. */
export interface AuditedMetadata {
  /** Number of classes that were checked. */
  readonly classes_audited: number;
  /** Whether a class is declared visible. If so, only visible classes are checked. */
  readonly visible_classes_declared: boolean;
  /** Classes without a description. */
  readonly missing_class_descriptions: readonly string[];
  /** By class; limited to the allowlist where one exists. */
  readonly missing_field_descriptions: Readonly<Record<string, readonly string[]>>;
  /** By class: entries of `fields` without a column in the class. */
  readonly unresolvable_allowlist_entries: Readonly<Record<string, readonly string[]>>;
  /** By class: its canonical filter. */
  readonly canonical_filter_summary: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

const OWN_COLUMNS: ReadonlySet<string> = new Set([...ALWAYS_KEEP, 'ACL']);

interface AuditedClass {
  readonly name: string;
  readonly policy: ClassPolicy;
  readonly schema: ClassSchema | undefined;
}

/** For operators: compares the policy with the schema of the database. */
@Injectable()
export class MetadataAudit {
  constructor(
    @Inject(Policies) private readonly policies: Pick<Policies, 'current'>,
    private readonly catalogue: SchemaCatalogue,
  ) {}

  /**
   * Checks the visible classes when any is declared visible, else all. Hidden and system classes appear in no section.
   * @throws StoreError when the database does not answer
   */
  async run(): Promise<AuditedMetadata> {
    const policy = this.policies.current;
    const classes = await this.listAudited(policy);
    return {
      classes_audited: classes.length,
      visible_classes_declared: policy.hasVisibleClasses,
      missing_class_descriptions: classes.filter(({ policy }) => !policy.description).map(({ name }) => name),
      missing_field_descriptions: byClass(classes, listUndescribedFields),
      unresolvable_allowlist_entries: byClass(classes, unresolvableEntries),
      canonical_filter_summary: Object.fromEntries(
        classes.flatMap(({ name, policy: { canonicalFilter } }) =>
          canonicalFilter ? [[name, canonicalFilter] as const] : [],
        ),
      ),
    };
  }

  /** Runs the audit and also writes it line by line. */
  async summarize(write: (line: string) => void): Promise<AuditedMetadata> {
    const found = await this.run();
    write(`classes audited: ${found.classes_audited}`);
    write(`without description: ${found.missing_class_descriptions.join(', ') || 'none'}`);
    for (const [title, section] of [
      ['fields without description', found.missing_field_descriptions],
      ['allowlist entries without column', found.unresolvable_allowlist_entries],
    ] as const) {
      for (const [name, fields] of Object.entries(section)) write(`${name}: ${title}: ${fields.join(', ')}`);
    }
    for (const [name, filter] of Object.entries(found.canonical_filter_summary))
      write(`${name}: canonical filter: ${JSON.stringify(filter)}`);
    return found;
  }

  private async listAudited(policy: Policy): Promise<AuditedClass[]> {
    const { classes, hasVisibleClasses } = policy;
    const schemas = await this.catalogue.snapshot();
    const bound = new BoundPolicy(policy, schemas);
    return [...new Set([...schemas.classNames(), ...classes.keys()])]
      .filter((name) => !isSystemClassName(name))
      .sort()
      .map((name) => ({
        name,
        policy: bound.classPolicy(name),
        schema: schemas.get(name),
      }))
      .filter(({ policy }) => policy.hiding === 'no' && (!hasVisibleClasses || policy.visible));
  }
}

function byClass(
  classes: readonly AuditedClass[],
  listFields: (one: AuditedClass) => readonly string[],
): Record<string, readonly string[]> {
  const found = classes.map((one) => [one.name, [...listFields(one)].sort()] as const);
  return Object.fromEntries(found.filter(([, fields]) => fields.length > 0));
}

function listUndescribedFields({ policy, schema }: AuditedClass): string[] {
  const columns = policy.fields ?? [...(schema?.fields.keys() ?? [])];
  return columns.filter((name) => !OWN_COLUMNS.has(name) && !policy.properties.get(name)?.description);
}

/** A class without a schema in the database resolves nothing, which is expected. */
function unresolvableEntries({ policy, schema }: AuditedClass): string[] {
  return schema ? (policy.fields ?? []).filter((name) => !schema.fields.has(name)) : [];
}
