import { canonicalClassName } from '#agent';
import type { ClassPolicy, Hiding, PropertyPolicy, SearchablePolicy } from '../model/class-policy.js';
import { ALWAYS_KEEP, DEFAULT_SEARCH_INDEX, DEFAULT_VECTOR_INDEX } from '../model/class-policy.js';
import { FieldNames } from '../model/field-names.js';
import { isInternalField } from '../model/internal-fields.js';
import { compileMasks } from '../masking/compile-masks.js';
import type { ClassConfig, PropertyConfig, SearchableConfig } from './policy-config.js';

/** A declaration that cannot be meant: where it stands and what is wrong. */
export interface PolicyFault {
  readonly path: string;
  readonly message: string;
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

interface SearchableSite {
  readonly fields: readonly string[] | null;
  readonly path: string;
}

/** Text that agents may not read would be read off its likeness to what they ask. */
function searchableOf(
  config: SearchableConfig | null | undefined,
  names: FieldNames,
  { fields, path }: SearchableSite,
  faults: PolicyFault[],
): SearchablePolicy | null {
  if (!config) return null;
  const wire = (list: readonly string[]) => [...new Set(list.map((name) => names.wireName(name)))];
  const field = names.wireName(config.field);
  if (isInternalField(field) || field.includes('.') || field.includes('$'))
    faults.push({
      path: `${path}.field`,
      message: `'${config.field}' is not a column that can hold a vector`,
    });
  const textFields = config.textFields ? wire(config.textFields) : null;
  const unread = fields ? (textFields ?? []).filter((name) => !fields.includes(name)) : [];
  if (unread.length > 0)
    faults.push({ path: `${path}.textFields`, message: `not among fields: ${unread.join(', ')}` });
  return {
    field,
    filterFields: wire(config.filterFields ?? []).filter((name) => !isInternalField(name)),
    textFields,
    index: config.index ?? DEFAULT_VECTOR_INDEX,
  };
}

/** Compiles one class. A class that nobody declared is compiled from the empty declaration. */
export function compileClass(
  declaredName: string,
  config: ClassConfig,
  faults: PolicyFault[] = [],
): ClassPolicy {
  const className = canonicalClassName(declaredName);
  const path = `policy.classes.${declaredName}`;
  const aliases = aliasesOf(config.properties ?? {});
  const names = new FieldNames(aliases);
  const wire = (list: readonly string[] | undefined): string[] | null =>
    list
      ? [...new Set(list.map((name) => names.wireName(name)))].filter((name) => !isInternalField(name))
      : null;

  const fields =
    wire(config.fields)?.filter((name) => !(ALWAYS_KEEP as readonly string[]).includes(name)) ?? null;
  const joinFields = wire(config.joinFields);
  if (fields && joinFields) {
    const extras = joinFields.filter(
      (name) => !fields.includes(name) && !(ALWAYS_KEEP as readonly string[]).includes(name),
    );
    if (extras.length > 0) {
      faults.push({ path: `${path}.joinFields`, message: `not among fields: ${extras.join(', ')}` });
    }
  }
  for (const [spelling, column] of aliases) {
    if (isInternalField(column)) {
      faults.push({
        path: `${path}.properties.${spelling}.field`,
        message: `'${column}' is an internal column`,
      });
    }
  }
  const masks = compileMasks(config.masks, { names, path }, faults);
  if (masks.size > 0 && config.searchable && !config.searchable.textFields)
    faults.push({
      path: `${path}.searchable.textFields`,
      message: 'must be listed beside masks: likeness to a masked text would spell it out',
    });
  const properties = new Map<string, PropertyPolicy>();
  for (const [name, property] of Object.entries(config.properties ?? {})) {
    properties.set(names.wireName(name), propertyPolicy(property));
  }
  return Object.freeze({
    className,
    hiding: hidingOf(className, config.hidden),
    visible: config.visible ?? false,
    description: config.description ?? null,
    usage: config.usage ?? null,
    fields,
    joinFields,
    largeFields: wire(config.largeFields) ?? [],
    masks,
    canonicalFilter: config.canonicalFilter ?? null,
    tenantScope: config.tenantScope
      ? { field: names.wireName(config.tenantScope.field), bypass: config.tenantScope.bypass ?? [] }
      : null,
    allowCollscan: config.allowCollscan ?? false,
    searchable: searchableOf(config.searchable, names, { fields, path: `${path}.searchable` }, faults),
    searchIndex: config.searchIndex ?? DEFAULT_SEARCH_INDEX,
    properties,
    aliases,
  });
}
