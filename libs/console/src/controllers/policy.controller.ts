import { Get, Inject, Param, Query } from '@nestjs/common';
import { IsInt, IsOptional, Min } from 'class-validator';
import { type AuditedMetadata, MetadataAudit } from '#dispatcher';
import { type DeclaredClass, Policies, type Policy } from '#policy';
import { Convert } from '#schema';
import { NotServed, createValidationPipe } from '#streaming';
import { DeclaredMethods } from '#tools';
import { OperatorController, WithoutSharedState } from '../console.guards.js';
import { showValues } from '../policy-view.js';
import {
  type ShownAgentSurface,
  type ListedClasses,
  type PolicyChanges,
  type PolicyVersion,
  refuseBusy,
  type SimulatedAgent,
  SimulationService,
} from './explain.controller.js';
import { PageQuery } from './page-query.js';

/** The policy of a class; of its filter only the field names. */
export interface ShownClass {
  readonly name: string;
  /** `limited`: some fields or rows are withheld or masked. `open`: no rule of the class withholds anything. */
  readonly access: 'open' | 'limited' | 'hidden';
  readonly visible: boolean;
  readonly description: string | null;
  readonly usage: string | null;
  readonly fields: readonly string[] | null;
  readonly join_fields: readonly string[] | null;
  readonly large_fields: readonly string[];
  readonly canonical_filter: readonly string[];
  readonly tenant_field: string | null;
  /** The further database that holds its rows; null: the first one. */
  readonly database: string | null;
  /** What each permission level receives instead of a field; `form` is that of `readonly`. */
  readonly masks: readonly {
    readonly field: string;
    readonly form: string;
    readonly tiers: Readonly<Record<string, string>>;
  }[];
  /** Fields that the row filter of every agent constrains. */
  readonly filters: readonly string[];
  /** Declared values of fields. */
  readonly enums: Readonly<Record<string, readonly string[]>>;
  /** Methods that applications declare on the class. */
  readonly methods: readonly { readonly name: string; readonly permission: string }[];
}

/** A part of the classes of the policy, by name. */
export interface PolicyAnswer extends Pick<Policy, 'version' | 'switches'> {
  readonly total: number;
  readonly classes: readonly ShownClass[];
  readonly next: string | null;
}

/** Who there is, without tools. */
export interface PolicyAgents extends PolicyVersion {
  readonly agents: readonly Omit<SimulatedAgent, 'tools'>[];
}

export type MetadataAnswer = AuditedMetadata & { readonly shown_classes: number };

/** Classes in one answer on what an agent sees: each costs a simulated call per tool. */
const MOST_SURFACES = 50;

const asNumber = Convert(Number);

/** The versions to compare: their numbers in this process, 0 for the one before its start. Default: the latest two. */
export class ChangesQuery {
  @IsOptional()
  @asNumber
  @IsInt({ message: 'from must be the number of a version' })
  @Min(0, { message: 'from must be the number of a version' })
  from?: number;

  @IsOptional()
  @asNumber
  @IsInt({ message: 'to must be the number of a version' })
  @Min(1, { message: 'to must be the number of a version' })
  to?: number;
}

/** The classes of the policy in pages, and the gaps in their descriptions. */
@OperatorController('console/api')
export class PolicyController {
  constructor(
    @Inject(Policies) private readonly policies: Policies,
    @Inject(MetadataAudit) private readonly metadata: MetadataAudit,
    @Inject(DeclaredMethods) private readonly methods: DeclaredMethods,
    @Inject(SimulationService) private readonly simulations: SimulationService,
  ) {}

  @Get('policy')
  @WithoutSharedState()
  classes(@Query(createValidationPipe(PageQuery)) { after, limit }: PageQuery): PolicyAnswer {
    const { classes, version, switches } = this.policies.current;
    const names = [...classes.keys()].filter((name) => name > after).sort();
    const page = names.slice(0, limit);
    return {
      version,
      switches,
      total: classes.size,
      classes: page.map((name) => showClass(classes.get(name) as DeclaredClass, this.listMethods(name))),
      next: page.length < names.length ? (page.at(-1) ?? null) : null,
    };
  }

  /** Who there is. What each sees is asked by agent. */
  @Get('policy/agents')
  @WithoutSharedState()
  async agents(): Promise<PolicyAgents> {
    const { agents, policy } = await this.simulations.catalogue().catch(refuseBusy);
    return { ...policy, agents: agents.map(({ tools: _tools, ...agent }) => agent) };
  }

  /** What one agent sees, as the gates decide its calls. */
  @Get('policy/agents/:agent')
  @WithoutSharedState()
  async agent(
    @Param('agent') agent: string,
    @Query(createValidationPipe(PageQuery)) { after, limit }: PageQuery,
  ): Promise<ShownAgentSurface> {
    const found = await this.simulations
      .surface(agent, { after, limit: Math.min(limit, MOST_SURFACES) })
      .catch(refuseBusy);
    if (!found) throw new NotServed(404, 'no such agent');
    return found;
  }

  /** What agents gained and lost between two versions that this process has served, or the one before its start. */
  @Get('policy/changes')
  @WithoutSharedState()
  async changes(
    @Query(createValidationPipe(ChangesQuery)) { from, to }: ChangesQuery,
  ): Promise<PolicyChanges> {
    if (from !== undefined && to !== undefined && from >= to)
      throw new NotServed(400, 'from must be the number of a version before to');
    const found = await this.simulations.changes(from, to).catch(refuseBusy);
    if (!found) throw new NotServed(404, 'no such version is kept: leave from and to out for the latest two');
    return found;
  }

  /** The classes that an agent's own listing names, for menus. */
  @Get('agents/:agent/classes')
  @WithoutSharedState()
  async listClasses(
    @Param('agent') agent: string,
    @Query(createValidationPipe(PageQuery)) { after, limit }: PageQuery,
  ): Promise<ListedClasses> {
    const found = await this.simulations.listClasses(agent, { after, limit }).catch(refuseBusy);
    if (!found) throw new NotServed(404, 'no such agent');
    return found;
  }

  private listMethods(className: string): ShownClass['methods'] {
    return this.methods
      .of(className)
      .slice(0, MOST_NAMES)
      .map(({ name, permission }) => ({ name, permission }));
  }

  @Get('metadata')
  @WithoutSharedState()
  async gaps(): Promise<MetadataAnswer> {
    return limitSections(await this.metadata.run());
  }
}

function showClass(known: DeclaredClass, methods: ShownClass['methods']): ShownClass {
  return {
    name: known.className,
    access: describeAccess(known),
    visible: known.visible,
    description: known.description,
    usage: known.usage,
    fields: known.fields,
    join_fields: known.joinFields,
    large_fields: known.largeFields,
    canonical_filter: Object.keys(known.canonicalFilter ?? {}).sort(),
    tenant_field: known.tenantScope?.field ?? null,
    database: known.database,
    masks: [...known.masks].slice(0, MOST_NAMES).map(([field, tiers]) => {
      const forms = Object.entries(tiers).map(([tier, { kind }]): [string, string] => [tier, kind]);
      return { field, form: tiers.readonly.kind, tiers: Object.fromEntries(forms) };
    }),
    filters: Object.keys(known.filters ?? {}).sort(),
    enums: listEnums(known),
    methods,
  };
}

/** Open is only what no rule of the class withholds, limits or masks. The default filter is one that a caller may leave out. */
function describeAccess({
  hiding,
  masks,
  tenantScope,
  filters,
  fields,
}: DeclaredClass): ShownClass['access'] {
  if (hiding !== 'no') return 'hidden';
  const limited = masks.size > 0 || tenantScope !== null || filters !== null || fields !== null;
  return limited ? 'limited' : 'open';
}

const MOST_NAMES = 500;
function listEnums({ properties }: Pick<DeclaredClass, 'properties'>): Record<string, readonly string[]> {
  const declared = [...properties].flatMap(([field, { enum: values }]) =>
    values ? [[field, showValues(values.keys())] as const] : [],
  );
  return Object.fromEntries(declared.slice(0, MOST_NAMES));
}

const MOST_CLASSES = 500;

/** Bounds the report for databases with thousands of classes; `shown_classes` says how many it covers. */
function limitSections(found: AuditedMetadata): MetadataAnswer {
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
