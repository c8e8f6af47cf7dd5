import { canonicalClassName } from '#core';
import { compileMasks } from '../masking/compile-masks.js';
import type { StorageForm } from '../model/class-schema.js';
import { ALWAYS_KEEP, FieldNames, isInternalField } from '../model/field-names.js';
import {
  type DeclaredClass,
  DEFAULT_SEARCH_INDEX,
  DEFAULT_VECTOR_INDEX,
  type HiddenFrom,
  type PropertyPolicy,
  type SearchablePolicy,
  type TenantScope,
} from '../model/policy.js';
import type { PolicyIssue } from '../model/policy-issue.js';
import { compilePlainStorage } from './plain-storage.js';
import type { ClassConfig, PropertyConfig, SearchableConfig } from './policy-config.js';

/** Classes that are hidden unless the operator declares otherwise. */
export const HIDDEN_BY_DEFAULT: ReadonlySet<string> = new Set([
  '_Product',
  '_Session',
  '_JobStatus',
  '_JobSchedule',
]);

/** The hiding of a class without a declaration. @param className canonical */
export function defaultHiding(className: string): HiddenFrom {
  return HIDDEN_BY_DEFAULT.has(className) ? 'always' : 'no';
}

function readHiding(className: string, declared: ClassConfig['hidden'], isPlain: boolean): HiddenFrom {
  // A collection of products is no class of Parse's own.
  if (declared === undefined) return isPlain ? 'no' : defaultHiding(className);
  if (typeof declared === 'object') return 'exceptMaster';
  return declared ? 'always' : 'no';
}

function readAliases(properties: Readonly<Record<string, PropertyConfig>>): Map<string, string> {
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

function readSearchable(
  config: SearchableConfig | null | undefined,
  path: string,
  issues: PolicyIssue[],
): SearchablePolicy | null {
  if (!config) return null;
  const { field } = config;
  if (isInternalField(field) || field.includes('.') || field.includes('$'))
    issues.push({ path: `${path}.field`, message: `'${field}' is not a column that can hold a vector` });
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

function readTenantScope(
  config: ClassConfig['tenantScope'],
  path: string,
  issues: PolicyIssue[],
): TenantScope | null {
  if (!config) return null;
  const { field, from, bypass = [] } = config;
  if (typeof field === 'string' && field.includes('.'))
    issues.push({
      path: `${path}.field`,
      message: `expected a field of the row itself, and '${field}' is a path`,
    });
  if (from !== undefined && typeof from !== 'function' && !isClaimSource(from))
    issues.push({
      path: `${path}.from`,
      message:
        "expected { claim: 'name' } or { claim: ['outer', 'inner'] }, or in code a function of the agent",
    });
  if (!Array.isArray(bypass) && typeof bypass !== 'function')
    issues.push({
      path: `${path}.bypass`,
      message: 'expected a list of tiers, or in code a function of the agent',
    });
  return { field, from: from ?? 'tenantId', bypass };
}

/** Lists that must be subsets of `fields`. Names that may be the same column are compared by `bindClass`. */
function outsideFields(
  declared: Pick<DeclaredClass, 'fields' | 'joinFields' | 'searchable'>,
  names: FieldNames,
  path: string,
): PolicyIssue[] {
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

/** Compiles one class, with names as written. A class without a declaration is compiled from the empty one. */
export function compileClass(
  declaredName: string,
  config: ClassConfig,
  issues: PolicyIssue[] = [],
  database: { readonly name: string | null; readonly storage: StorageForm } = {
    name: null,
    storage: 'parse',
  },
): DeclaredClass {
  const className = canonicalClassName(declaredName);
  const path = `policy.classes.${declaredName}`;
  const plain = compilePlainStorage(declaredName, config, database.storage, issues);
  const aliases = plain ? new Map<string, string>() : readAliases(config.properties ?? {});
  const keepUnique = (list: readonly string[] | undefined): string[] | null =>
    list ? [...new Set(list)].filter((name) => !isInternalField(name)) : null;
  const fields = keepUnique(config.fields);
  const joinFields = keepUnique(config.joinFields);
  for (const [spelling, column] of aliases) {
    if (isInternalField(column)) {
      issues.push({
        path: `${path}.properties.${spelling}.field`,
        message: `'${column}' is an internal column`,
      });
    }
  }
  const masks = compileMasks(config.masks, path, issues);
  if (masks.size > 0 && config.searchable && !config.searchable.textFields)
    issues.push({
      path: `${path}.searchable.textFields`,
      message: 'must be listed beside masks: likeness to a masked text would spell it out',
    });
  const searchable = readSearchable(config.searchable, `${path}.searchable`, issues);
  issues.push(...outsideFields({ fields, joinFields, searchable }, new FieldNames(aliases), path));
  return Object.freeze({
    className,
    database: database.name,
    plain,
    hiding: readHiding(className, config.hidden, plain !== null),
    visible: config.visible ?? false,
    description: config.description ?? null,
    usage: config.usage ?? null,
    fields,
    joinFields,
    largeFields: keepUnique(config.largeFields) ?? [],
    masks,
    canonicalFilter: config.canonicalFilter ?? null,
    filters: config.filters ?? null,
    tenantScope: readTenantScope(config.tenantScope, `${path}.tenantScope`, issues),
    allowCollscan: config.allowCollscan ?? false,
    readHooks: config.readHooks ?? null,
    searchable,
    searchIndex: config.searchIndex ?? DEFAULT_SEARCH_INDEX,
    properties: new Map(
      Object.entries(config.properties ?? {}).map(([name, property]) => [name, propertyPolicy(property)]),
    ),
    aliases,
  });
}
