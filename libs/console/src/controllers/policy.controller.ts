import { Get, Inject, Query } from '@nestjs/common';
import { type AuditedMetadata, MetadataAudit } from '#dispatcher';
import { type ClassPolicy, Policies } from '#policy';
import { validated } from '#streaming';
import { OperatorController } from '../console.guards.js';
import { PageQuery } from './page-query.js';

/** The policy of a class; of its filter only the field names. */
interface ShownClass {
  readonly name: string;
  readonly access: 'open' | 'hidden';
  readonly visible: boolean;
  readonly description: string | null;
  readonly usage: string | null;
  readonly fields: readonly string[] | null;
  readonly join_fields: readonly string[] | null;
  readonly large_fields: readonly string[];
  readonly canonical_filter: readonly string[];
  readonly tenant_field: string | null;
}

/** The classes of the policy in pages, and the gaps in their descriptions. */
@OperatorController('console/api')
export class PolicyController {
  constructor(
    @Inject(Policies) private readonly policies: Policies,
    @Inject(MetadataAudit) private readonly metadata: MetadataAudit,
  ) {}

  @Get('policy')
  classes(@Query(validated(PageQuery)) { after, limit }: PageQuery): object {
    const { classes, version, switches } = this.policies.current;
    const names = [...classes.keys()].filter((name) => name > after).sort();
    const page = names.slice(0, limit);
    return {
      version,
      switches,
      total: classes.size,
      classes: page.map((name) => shownClass(classes.get(name) as ClassPolicy)),
      next: page.length < names.length ? page.at(-1) : null,
    };
  }

  @Get('metadata')
  async gaps(): Promise<object> {
    return bounded(await this.metadata.run());
  }
}

function shownClass(known: ClassPolicy): ShownClass {
  return {
    name: known.className,
    access: known.hiding === 'no' ? 'open' : 'hidden',
    visible: known.visible,
    description: known.description,
    usage: known.usage,
    fields: known.fields,
    join_fields: known.joinFields,
    large_fields: known.largeFields,
    canonical_filter: Object.keys(known.canonicalFilter ?? {}).sort(),
    tenant_field: known.tenantScope?.field ?? null,
  };
}

const MOST_CLASSES = 500;

/** Bounds the report for databases with thousands of classes; `shown_classes` says how many it covers. */
function bounded(found: AuditedMetadata): AuditedMetadata & { readonly shown_classes: number } {
  const first = <T>(section: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(section).slice(0, MOST_CLASSES));
  return {
    ...found,
    missing_class_descriptions: found.missing_class_descriptions.slice(0, MOST_CLASSES),
    missing_field_descriptions: first(found.missing_field_descriptions),
    unresolvable_allowlist_entries: first(found.unresolvable_allowlist_entries),
    canonical_filter_summary: first(found.canonical_filter_summary),
    shown_classes: Math.min(found.classes_audited, MOST_CLASSES),
  };
}
