import { isDeepStrictEqual } from 'node:util';
import { canonicalClassName, type FilterSubject } from '#core';
import { joinMasks } from '../masking/compile-masks.js';
import { toLowerCamel } from '../model/field-names.js';
import { type OptionNames, optionsError } from '../model/known-options.js';
import type { PolicyIssue } from '../model/policy-issue.js';
import type { ClassConfig, PolicyConfig, PropertyConfig, TenantScopeConfig } from './policy-config.js';

/** The declaration of one class in code, in the form of the configuration. */
export interface ClassDeclaration {
  /** A key of `policy.classes`. */
  readonly className: string;
  /** Its entry there (docs/reference/configuration.md). */
  readonly config: ClassConfig;
}

/**
 * Merges declarations in code into the policy of the configuration. The stricter of two rules applies: code can add rules
 * and never remove one.
 * @param issues receives declarations that cannot be merged
 */
export function withDeclaredClasses(
  policy: PolicyConfig,
  declarations: readonly ClassDeclaration[],
  issues: PolicyIssue[] = [],
): PolicyConfig {
  if (declarations.length === 0) return policy;
  const classes: Record<string, ClassConfig> = { ...policy.classes };
  for (const { className, config } of declarations) {
    const unknown = optionsError(config, CLASS_OPTIONS);
    if (unknown !== null) issues.push({ path: `policy.classes.${className}`, message: unknown });
    const known = Object.keys(classes).find(
      (name) => canonicalClassName(name) === canonicalClassName(className),
    );
    const name = known ?? className;
    classes[name] = known ? narrowClassConfig(name, classes[known] as ClassConfig, config, issues) : config;
  }
  return { ...policy, classes };
}

/** What a declaration may say. */
export const CLASS_OPTIONS = {
  database: true,
  storage: true,
  collection: true,
  id: true,
  timestamps: true,
  description: true,
  usage: true,
  visible: true,
  hidden: true,
  fields: true,
  joinFields: true,
  largeFields: true,
  masks: true,
  canonicalFilter: true,
  filters: true,
  tenantScope: true,
  allowCollscan: true,
  readHooks: true,
  searchable: true,
  searchIndex: true,
  properties: true,
} satisfies OptionNames<ClassConfig>;

/** Merges two declarations of one class: the texts of the first, the rules of both. */
export function narrowClassConfig(
  className: string,
  first: ClassConfig,
  second: ClassConfig,
  issues: PolicyIssue[] = [],
): ClassConfig {
  const properties = joinProperties(first.properties, second.properties);
  // Names are not resolved yet: two spellings may be two columns.
  const common = (
    option: string,
    one: readonly string[] | undefined,
    other: readonly string[] | undefined,
  ) => {
    if (!one || !other) return one ?? other;
    const kept = new Set(other);
    for (const name of one.filter((own) => !kept.has(own))) {
      const alike = other.find((its) => !one.includes(its) && toLowerCamel(its) === toLowerCamel(name));
      if (alike !== undefined)
        issues.push({
          path: `policy.classes.${className}.${option}`,
          message: `is declared with '${name}' and with '${alike}'; write the name of the column in both`,
        });
    }
    return one.filter((name) => kept.has(name));
  };
  const mergeStorage = <Option extends 'database' | 'storage' | 'collection' | 'id' | 'timestamps'>(
    option: Option,
  ) => {
    const [one, other] = [first[option], second[option]];
    if (one === undefined || other === undefined) return one === undefined ? other : one;
    if (!isDeepStrictEqual(one, other))
      issues.push({
        path: `policy.classes.${className}.${option}`,
        message: 'is declared in code as well, and differently',
      });
    return one;
  };
  const joined: Record<keyof ClassConfig, unknown> = {
    database: mergeStorage('database'),
    storage: mergeStorage('storage'),
    collection: mergeStorage('collection'),
    id: mergeStorage('id'),
    timestamps: mergeStorage('timestamps'),
    description: first.description ?? second.description,
    usage: first.usage ?? second.usage,
    visible: first.visible ?? second.visible,
    hidden: strictest(first.hidden, second.hidden),
    fields: common('fields', first.fields, second.fields),
    // The join fields of one declaration must also be in the allowlist of the other.
    joinFields: common(
      'joinFields',
      first.joinFields && common('joinFields', first.joinFields, second.fields),
      second.joinFields && common('joinFields', second.joinFields, first.fields),
    ),
    largeFields: union(first.largeFields, second.largeFields),
    masks: joinMasks(first.masks, second.masks),
    canonicalFilter: both(first.canonicalFilter, second.canonicalFilter),
    filters: both(first.filters, second.filters),
    tenantScope: mergeTenantScope(className, first, second, issues),
    allowCollscan: every(first.allowCollscan, second.allowCollscan),
    readHooks: first.readHooks === 'possible' ? 'possible' : (second.readHooks ?? first.readHooks),
    searchable: mergeSearchable(className, first, second, common, issues),
    searchIndex: first.searchIndex ?? second.searchIndex,
    properties,
  };
  return Object.fromEntries(Object.entries(joined).filter(([, value]) => value !== undefined));
}

function strictest(one: ClassConfig['hidden'], other: ClassConfig['hidden']): ClassConfig['hidden'] {
  if (one === undefined || other === undefined) return one ?? other;
  if (one === true || other === true) return true;
  return one === false ? other : one;
}

function every(one: boolean | undefined, other: boolean | undefined): boolean | undefined {
  return one === undefined || other === undefined ? (one ?? other) : one && other;
}

function union(
  one: readonly string[] | undefined,
  other: readonly string[] | undefined,
): readonly string[] | undefined {
  return one && other ? [...new Set([...one, ...other])] : (one ?? other);
}

function both(
  one: ClassConfig['canonicalFilter'],
  other: ClassConfig['canonicalFilter'],
): ClassConfig['canonicalFilter'] {
  return one && other ? { $and: [one, other] } : (one ?? other);
}

function mergeTenantScope(
  className: string,
  { tenantScope: one }: ClassConfig,
  { tenantScope: other }: ClassConfig,
  issues: PolicyIssue[],
): ClassConfig['tenantScope'] {
  if (!one || !other) return one ?? other;
  if (one.field !== other.field) {
    issues.push({
      path: `policy.classes.${className}.tenantScope`,
      message: `is declared over '${one.field}' and over '${other.field}'`,
    });
  }
  if (one.from !== undefined && other.from !== undefined && one.from !== other.from) {
    issues.push({
      path: `policy.classes.${className}.tenantScope.from`,
      message: 'is declared twice, differently',
    });
  }
  const from = one.from ?? other.from;
  return { field: one.field, ...(from !== undefined && { from }), bypass: bypassOfBoth(one, other) };
}

/** The scope is bypassed when both declarations bypass it. */
function bypassOfBoth(
  { bypass: one = [] }: TenantScopeConfig,
  { bypass: other = [] }: TenantScopeConfig,
): NonNullable<TenantScopeConfig['bypass']> {
  if (typeof one !== 'function' && typeof other !== 'function')
    return one.filter((tier) => other.includes(tier));
  const applies = (bypass: typeof one, agent: FilterSubject) =>
    typeof bypass === 'function' ? bypass(agent) === true : bypass.includes(agent.permissions);
  return (agent) => applies(one, agent) && applies(other, agent);
}

function mergeSearchable(
  className: string,
  { searchable: one }: ClassConfig,
  { searchable: other }: ClassConfig,
  common: (
    option: string,
    one: readonly string[] | undefined,
    other: readonly string[] | undefined,
  ) => readonly string[] | undefined,
  issues: PolicyIssue[],
): ClassConfig['searchable'] {
  // Null: not searchable; undefined: not declared.
  if (one === undefined || other === undefined) return one ?? other;
  if (one === null || other === null) return null;
  if (one.field !== other.field) {
    issues.push({
      path: `policy.classes.${className}.searchable`,
      message: `is declared over '${one.field}' and over '${other.field}'`,
    });
  }
  const textFields = common('searchable.textFields', one.textFields, other.textFields);
  const index = one.index ?? other.index;
  return {
    field: one.field,
    filterFields: common('searchable.filterFields', one.filterFields ?? [], other.filterFields ?? []) ?? [],
    ...(textFields && { textFields }),
    ...(index !== undefined && { index }),
  };
}

function joinProperties(
  one: ClassConfig['properties'],
  other: ClassConfig['properties'],
): ClassConfig['properties'] {
  if (!one || !other) return one ?? other;
  const joined: Record<string, PropertyConfig> = { ...other };
  for (const [name, property] of Object.entries(one)) {
    const values = commonValues(property.enum, other[name]?.enum);
    joined[name] = { ...other[name], ...property, ...(values && { enum: values }) };
  }
  return joined;
}

function commonValues(one: PropertyConfig['enum'], other: PropertyConfig['enum']): PropertyConfig['enum'] {
  if (!one || !other) return one ?? other;
  return Object.fromEntries(Object.entries(one).filter(([value]) => Object.hasOwn(other, value)));
}
