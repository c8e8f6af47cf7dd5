import { canonicalClassName } from '#agent';
import type {
  DeclaredClass,
  Hiding,
  PropertyPolicy,
  SearchablePolicy,
  TenantScope,
} from '../model/class-policy.js';
import { ALWAYS_KEEP, DEFAULT_SEARCH_INDEX, DEFAULT_VECTOR_INDEX } from '../model/class-policy.js';
import { FieldNames } from '../model/field-names.js';
import { isInternalField } from '../model/internal-fields.js';
import { compileMasks } from '../masking/compile-masks.js';
import type { ClassConfig, PropertyConfig, SearchableConfig } from './policy-config.js';

/** A declaration that cannot be meant: where it stands and what is wrong. */
export interface PolicyFault {
  readonly path: string;
  readonly message: string;
  /** Other options that this depends on. */
  readonly related?: readonly string[];
}

/** Classes that nobody sees unless the operator says otherwise. */
export const HIDDEN_BY_DEFAULT: ReadonlySet<string> = new Set([
  '_Product',
  '_Session',
  '_JobStatus',
  '_JobSchedule',
]);

/** How a class that nobody declared is hidden; by canonical name. */
export function defaultHiding(className: string): Hiding {
  return HIDDEN_BY_DEFAULT.has(className) ? 'always' : 'no';
}

function hidingOf(className: string, declared: ClassConfig['hidden']): Hiding {
  if (declared === undefined) return defaultHiding(className);
  if (typeof declared === 'object') return 'exceptMaster';
  return declared ? 'always' : 'no';
}

function aliasesOf(properties: Readonly<Record<string, PropertyConfig>>): Map<string, string> {
  const aliases = new Map<string, string>();
  for (const [name, property] of Object.entries(properties)) {
    if (property.field !== undefined) aliases.set(name, property.field);
  }
  return aliases;
}

function propertyPolicy(property: PropertyConfig): PropertyPolicy {
  const values = Object.entries(property.enum ?? {}).map(
    ([value, meaning]) => [value, meaning ?? ''] as const,
  );
  return {
    ...(property.type !== undefined && { type: property.type }),
    ...(property.description && { description: property.description }),
    ...(property.targetClass !== undefined && { targetClass: canonicalClassName(property.targetClass) }),
    ...(values.length > 0 && { enum: new Map(values) }),
  };
}

function searchableOf(
  config: SearchableConfig | null | undefined,
  path: string,
  faults: PolicyFault[],
): SearchablePolicy | null {
  if (!config) return null;
  const { field } = config;
  if (isInternalField(field) || field.includes('.') || field.includes('$'))
    faults.push({ path: `${path}.field`, message: `'${field}' is not a column that can hold a vector` });
  return {
    field,
    filterFields: (config.filterFields ?? []).filter((name) => !isInternalField(name)),
    textFields: config.textFields ?? null,
    index: config.index ?? DEFAULT_VECTOR_INDEX,
  };
}

const isClaimName = (name: unknown): name is string => typeof name === 'string' && name !== '';

function isClaimSource(from: unknown): boolean {
  if (from === null || typeof from !== 'object' || Object.keys(from).join() !== 'claim') return false;
  const { claim } = from as { claim: unknown };
  return isClaimName(claim) || (Array.isArray(claim) && claim.length > 0 && claim.every(isClaimName));
}

function tenantScopeOf(
  config: ClassConfig['tenantScope'],
  path: string,
  faults: PolicyFault[],
): TenantScope | null {
  if (!config) return null;
  const { from, bypass = [] } = config;
  if (from !== undefined && typeof from !== 'function' && !isClaimSource(from))
    faults.push({
      path: `${path}.from`,
      message:
        "expected { claim: 'name' } or { claim: ['outer', 'inner'] }, or in code a function of the agent",
    });
  if (!Array.isArray(bypass) && typeof bypass !== 'function')
    faults.push({
      path: `${path}.bypass`,
      message: 'expected a list of tiers, or in code a function of the agent',
    });
  return { field: config.field, from: from ?? 'tenantId', bypass };
}

/** Lists that must lie within `fields`. Which columns they mean is not known yet: names that may be one are left to the binding. */
function outsideFields(
  declared: Pick<DeclaredClass, 'fields' | 'joinFields' | 'searchable'>,
  names: FieldNames,
  path: string,
): PolicyFault[] {
  if (!declared.fields) return [];
  const within = new Set([...declared.fields, ...ALWAYS_KEEP].map((name) => names.wireName(name)));
  const lists: readonly (readonly [string, readonly string[] | null | undefined])[] = [
    ['joinFields', declared.joinFields],
    ['searchable.textFields', declared.searchable?.textFields],
  ];
  return lists.flatMap(([option, list]) => {
    const extras = (list ?? []).filter((name) => !within.has(names.wireName(name)));
    if (extras.length === 0) return [];
    return [
      {
        path: `${path}.${option}`,
        message: `not among fields: ${extras.join(', ')}`,
        related: [`${path}.fields.*`],
      },
    ];
  });
}

/** Compiles one class, with names as written. A class that nobody declared is compiled from the empty declaration. */
export function compileClass(
  declaredName: string,
  config: ClassConfig,
  faults: PolicyFault[] = [],
): DeclaredClass {
  const className = canonicalClassName(declaredName);
  const path = `policy.classes.${declaredName}`;
  const aliases = aliasesOf(config.properties ?? {});
  const listed = (list: readonly string[] | undefined): string[] | null =>
    list ? [...new Set(list)].filter((name) => !isInternalField(name)) : null;
  const fields = listed(config.fields);
  const joinFields = listed(config.joinFields);
  for (const [spelling, column] of aliases) {
    if (isInternalField(column)) {
      faults.push({
        path: `${path}.properties.${spelling}.field`,
        message: `'${column}' is an internal column`,
      });
    }
  }
  const masks = compileMasks(config.masks, path, faults);
  if (masks.size > 0 && config.searchable && !config.searchable.textFields)
    faults.push({
      path: `${path}.searchable.textFields`,
      message: 'must be listed beside masks: likeness to a masked text would spell it out',
    });
  const searchable = searchableOf(config.searchable, `${path}.searchable`, faults);
  faults.push(...outsideFields({ fields, joinFields, searchable }, new FieldNames(aliases), path));
  return Object.freeze({
    className,
    hiding: hidingOf(className, config.hidden),
    visible: config.visible ?? false,
    description: config.description ?? null,
    usage: config.usage ?? null,
    fields,
    joinFields,
    largeFields: listed(config.largeFields) ?? [],
    masks,
    canonicalFilter: config.canonicalFilter ?? null,
    tenantScope: tenantScopeOf(config.tenantScope, `${path}.tenantScope`, faults),
    allowCollscan: config.allowCollscan ?? false,
    searchable,
    searchIndex: config.searchIndex ?? DEFAULT_SEARCH_INDEX,
    properties: new Map(
      Object.entries(config.properties ?? {}).map(([name, property]) => [name, propertyPolicy(property)]),
    ),
    aliases,
  });
}
