import { canonicalClassName } from '#agent';
import { joinMasks } from '../masking/compile-masks.js';
import { FieldNames } from '../model/field-names.js';
import type { PolicyFault } from './compile-class.js';
import type { ClassConfig, PolicyConfig, PropertyConfig } from './policy-config.js';

/** What code declares for one class, in the words of the configuration. */
export interface ClassDeclaration {
  readonly className: string;
  readonly config: ClassConfig;
}

/**
 * The policy with what code declares laid over it. Where both speak of the same thing, what returns less holds; code can
 * add a rule, never take one away.
 * @param faults gets declarations that cannot be joined
 */
export function withDeclaredClasses(
  policy: PolicyConfig,
  declarations: readonly ClassDeclaration[],
  faults: PolicyFault[] = [],
): PolicyConfig {
  if (declarations.length === 0) return policy;
  const classes: Record<string, ClassConfig> = { ...policy.classes };
  for (const { className, config } of declarations) {
    const known = Object.keys(classes).find(
      (name) => canonicalClassName(name) === canonicalClassName(className),
    );
    const name = known ?? className;
    classes[name] = known ? narrowClassConfig(name, classes[known] as ClassConfig, config, faults) : config;
  }
  return { ...policy, classes };
}

/** One class from two declarations. Texts are the first one's; rules are those of both. */
export function narrowClassConfig(
  className: string,
  first: ClassConfig,
  second: ClassConfig,
  faults: PolicyFault[] = [],
): ClassConfig {
  const properties = joinProperties(first.properties, second.properties);
  const names = new FieldNames(
    new Map(
      Object.entries(properties ?? {}).flatMap(([name, { field }]) =>
        field === undefined ? [] : [[name, field]],
      ),
    ),
  );
  const common = (one: readonly string[] | undefined, other: readonly string[] | undefined) => {
    if (!one || !other) return one ?? other;
    const kept = new Set(other.map((name) => names.wireName(name)));
    return one.filter((name) => kept.has(names.wireName(name)));
  };
  const joined: Record<keyof ClassConfig, unknown> = {
    description: first.description ?? second.description,
    usage: first.usage ?? second.usage,
    visible: first.visible ?? second.visible,
    hidden: strictest(first.hidden, second.hidden),
    fields: common(first.fields, second.fields),
    // What one side joins with is also held to the other side's allowlist.
    joinFields: common(
      first.joinFields && common(first.joinFields, second.fields),
      second.joinFields && common(second.joinFields, first.fields),
    ),
    largeFields: union(first.largeFields, second.largeFields),
    masks: joinMasks(first.masks, second.masks, names),
    canonicalFilter: both(first.canonicalFilter, second.canonicalFilter),
    tenantScope: tenantScopeOf(className, first, second, names, faults),
    allowCollscan: every(first.allowCollscan, second.allowCollscan),
    searchable: searchableOf(className, first, second, common, faults),
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

function tenantScopeOf(
  className: string,
  { tenantScope: one }: ClassConfig,
  { tenantScope: other }: ClassConfig,
  names: FieldNames,
  faults: PolicyFault[],
): ClassConfig['tenantScope'] {
  if (!one || !other) return one ?? other;
  if (names.wireName(one.field) !== names.wireName(other.field)) {
    faults.push({
      path: `policy.classes.${className}.tenantScope`,
      message: `is declared over '${one.field}' and over '${other.field}'`,
    });
  }
  return { field: one.field, bypass: (one.bypass ?? []).filter((tier) => other.bypass?.includes(tier)) };
}

function searchableOf(
  className: string,
  { searchable: one }: ClassConfig,
  { searchable: other }: ClassConfig,
  common: (
    one: readonly string[] | undefined,
    other: readonly string[] | undefined,
  ) => readonly string[] | undefined,
  faults: PolicyFault[],
): ClassConfig['searchable'] {
  // Null says: not searchable; undefined says nothing.
  if (one === undefined || other === undefined) return one ?? other;
  if (one === null || other === null) return null;
  if (one.field !== other.field) {
    faults.push({
      path: `policy.classes.${className}.searchable`,
      message: `is declared over '${one.field}' and over '${other.field}'`,
    });
  }
  const textFields = common(one.textFields, other.textFields);
  const index = one.index ?? other.index;
  return {
    field: one.field,
    filterFields: common(one.filterFields ?? [], other.filterFields ?? []) ?? [],
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
