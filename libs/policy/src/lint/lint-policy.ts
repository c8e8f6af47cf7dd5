import { type AgentShape, isSystemClassName } from '#agent';
import type { ClassPolicy, Policy } from '../model/class-policy.js';
import type { ClassSchema, SchemaSnapshot } from '../model/class-schema.js';
import { FieldNames, rootOf } from '../model/field-names.js';
import type { PolicyFault } from '../compile/compile-class.js';
import { suggestNames } from '../scope/suggest-names.js';
import { fieldsNamed } from './fields-named.js';

/**
 * What an operator may not have meant: nothing that stops a start, everything that a typo or an omission would leave.
 * @param tools the names that exist
 * @param schemas the classes of the database; null when it could not be read, and names are not compared
 */
export function lintPolicy(
  policy: Policy,
  agents: Iterable<AgentShape>,
  tools: ReadonlySet<string>,
  schemas: SchemaSnapshot | null,
): PolicyFault[] {
  const shapes = [...agents];
  return [
    ...[...policy.classes.values()].flatMap((declared) => [
      ...(schemas ? unknownNames(declared, schemas) : []),
      ...undescribed(declared),
      ...idleMasks(declared, schemas),
      ...unscoped(declared, policy),
      ...unreadable(declared, shapes),
    ]),
    ...shapes.flatMap((shape) => unknownTools(shape, tools)),
    ...shapes.flatMap((shape) => (schemas ? unknownInShape(shape, policy, schemas) : [])),
    ...(schemas ? undeclared(policy, schemas) : []),
  ];
}

const pathOf = ({ className }: ClassPolicy) => `policy.classes.${className}`;

function absent(name: string, what: string, known: readonly string[]): string {
  const [nearest] = suggestNames(name, known);
  return `the database has no ${what} '${name}'${nearest === undefined ? '' : `; did you mean '${nearest}'?`}`;
}

function unknownNames(declared: ClassPolicy, schemas: SchemaSnapshot): PolicyFault[] {
  const { className } = declared;
  const schema = schemas.get(className);
  if (!schema) return [{ path: pathOf(declared), message: absent(className, 'class', schemas.classNames()) }];
  const named: readonly (readonly [option: string, fields: readonly string[]])[] = [
    ['fields', declared.fields ?? []],
    ['joinFields', declared.joinFields ?? []],
    ['largeFields', declared.largeFields],
    ['tenantScope', declared.tenantScope ? [declared.tenantScope.field] : []],
    ['searchable', searchableNames(declared)],
    ['masks', [...declared.masks.keys()]],
    ['properties', [...declared.properties.keys()]],
    ['canonicalFilter', fieldsNamed(declared.canonicalFilter, new FieldNames(declared.aliases))],
  ];
  return named.flatMap(([option, fields]) => unknownFields(`${pathOf(declared)}.${option}`, fields, schema));
}

function unknownFields(
  path: string,
  fields: readonly string[],
  { fields: known }: ClassSchema,
): PolicyFault[] {
  return [...new Set(fields.map(rootOf))]
    .filter((name) => !known.has(name))
    .map((name) => ({ path, message: absent(name, 'field', [...known.keys()]) }));
}

function searchableNames({ searchable }: ClassPolicy): readonly string[] {
  return searchable ? [searchable.field, ...searchable.filterFields, ...(searchable.textFields ?? [])] : [];
}

function undescribed(declared: ClassPolicy): PolicyFault[] {
  if (declared.hiding !== 'no' || declared.description !== null) return [];
  return [{ path: pathOf(declared), message: 'no description: agents see its name and fields alone' }];
}

/** A mask never shows what `fields` leaves out, and does not follow pointers. */
function idleMasks(declared: ClassPolicy, schemas: SchemaSnapshot | null): PolicyFault[] {
  const columns = schemas?.get(declared.className)?.fields;
  return [...declared.masks.keys()].flatMap((field): PolicyFault[] => {
    const path = `${pathOf(declared)}.masks.${field}`;
    const root = rootOf(field);
    if (declared.fields && !declared.fields.includes(root))
      return [{ path, message: `has no effect: '${root}' is not among fields, so nobody reads it` }];
    const type = columns?.get(root)?.type;
    if (root === field || (type !== 'Pointer' && type !== 'Relation')) return [];
    return [
      { path, message: `does not hold for rows that '${root}' leads to; mask the field of their class` },
    ];
  });
}

/** Exposed on purpose, where other classes are kept apart by tenant. */
export function isExposedToEveryTenant(declared: ClassPolicy, policy: Policy): boolean {
  const exposed = declared.visible || declared.searchable !== null;
  return policy.hasTenantScopes && exposed && declared.hiding === 'no' && declared.tenantScope === null;
}

function unscoped(declared: ClassPolicy, policy: Policy): PolicyFault[] {
  if (!isExposedToEveryTenant(declared, policy)) return [];
  return [
    {
      path: pathOf(declared),
      message: 'no tenantScope, though other classes have one: every tenant reads its rows',
    },
  ];
}

function unreadable(declared: ClassPolicy, shapes: readonly AgentShape[]): PolicyFault[] {
  const scope = declared.tenantScope;
  if (!scope || declared.hiding !== 'no') return [];
  const without = shapes.filter(
    ({ tenantId, permissions, classes }) =>
      tenantId === null && !scope.bypass.includes(permissions) && classes.permits(declared.className),
  );
  if (without.length === 0) return [];
  const names = without.map(({ name }) => name).join(', ');
  return [
    {
      path: pathOf(declared),
      message: `needs a tenant, and agents without tenantId cannot read it: ${names}`,
    },
  ];
}

function unknownTools(
  { name, tools: { only, except } }: AgentShape,
  tools: ReadonlySet<string>,
): PolicyFault[] {
  return [...(only ?? []), ...(except ?? [])]
    .filter((tool) => !tools.has(tool))
    .map((tool) => {
      const [nearest] = suggestNames(tool, [...tools]);
      const hint = nearest === undefined ? '' : `; did you mean '${nearest}'?`;
      return { path: `agents.${name}.tools`, message: `no tool is named '${tool}'${hint}` };
    });
}

function unknownInShape(shape: AgentShape, policy: Policy, schemas: SchemaSnapshot): PolicyFault[] {
  const path = `agents.${shape.name}`;
  const { only, except } = shape.classes;
  const named = [...(only ?? []), ...(except ?? [])].filter((name) => !schemas.get(name));
  const filters = [...shape.filters].flatMap(([className, constraint]) => {
    if (className === 'default') return [];
    const schema = schemas.get(className);
    const at = `${path}.filters.${className}`;
    if (!schema) return [{ path: at, message: absent(className, 'class', schemas.classNames()) }];
    const names = new FieldNames(policy.classes.get(className)?.aliases);
    return unknownFields(at, fieldsNamed(constraint, names), schema);
  });
  return [
    ...named.map((name) => ({
      path: `${path}.classes`,
      message: absent(name, 'class', schemas.classNames()),
    })),
    ...filters,
  ];
}

/** Parse's own classes have their own defaults. */
function undeclared(policy: Policy, schemas: SchemaSnapshot): PolicyFault[] {
  const names = schemas.classNames().filter((name) => !policy.classes.has(name) && !isSystemClassName(name));
  if (names.length === 0) return [];
  const message = `not declared, so every agent whose classes filter permits them reads all their fields: ${names.join(', ')}`;
  return [{ path: 'policy.classes', message }];
}
