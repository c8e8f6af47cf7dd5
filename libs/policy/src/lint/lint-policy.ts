import { type AgentShape, isSystemClassName } from '#agent';
import { type DeclaredClass, type Policy, tierBypasses } from '../model/class-policy.js';
import type { SchemaSnapshot } from '../model/class-schema.js';
import { FieldNames, rootOf } from '../model/field-names.js';
import type { PolicyFault } from '../compile/compile-class.js';
import { suggestNames } from '../scope/suggest-names.js';
import { unknownAgentNames } from './agent-names.js';

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
    ...shapes.flatMap((shape) => lenientNames(shape, policy, tools, schemas)),
    ...shapes.flatMap((shape) => (schemas ? unknownInShape(shape, schemas) : [])),
    ...(schemas ? undeclared(policy, schemas) : []),
  ];
}

const pathOf = ({ className }: DeclaredClass) => `policy.classes.${className}`;

function absent(name: string, what: string, known: readonly string[]): string {
  const [nearest] = suggestNames(name, known);
  return `the database has no ${what} '${name}'${nearest === undefined ? '' : `; did you mean '${nearest}'?`}`;
}

/** What protects nothing; the rest stops a start (`bindPolicy`). */
function unknownNames(declared: DeclaredClass, schemas: SchemaSnapshot): PolicyFault[] {
  const { className, aliases, properties } = declared;
  const schema = schemas.get(className);
  if (!schema) return [{ path: pathOf(declared), message: absent(className, 'class', schemas.classNames()) }];
  const names = new FieldNames(aliases, schema.fields);
  return [...properties.keys()]
    .filter((written) => names.column(written) === null)
    .map((written) => ({
      path: `${pathOf(declared)}.properties`,
      message: absent(written, 'field', [...schema.fields.keys()]),
    }));
}

function undescribed(declared: DeclaredClass): PolicyFault[] {
  if (declared.hiding !== 'no' || declared.description !== null) return [];
  return [{ path: pathOf(declared), message: 'no description: agents see its name and fields alone' }];
}

/** A mask never shows what `fields` leaves out, and does not follow pointers. */
function idleMasks(declared: DeclaredClass, schemas: SchemaSnapshot | null): PolicyFault[] {
  const columns = schemas?.get(declared.className)?.fields;
  const names = new FieldNames(declared.aliases, columns ?? null);
  const readable = declared.fields && new Set(declared.fields.map((name) => names.wireName(name)));
  return [...declared.masks.keys()].flatMap((written): PolicyFault[] => {
    const path = `${pathOf(declared)}.masks.${written}`;
    const field = names.wirePath(written);
    const root = rootOf(field);
    if (readable && !readable.has(root))
      return [{ path, message: `has no effect: '${root}' is not among fields, so nobody reads it` }];
    const type = columns?.get(root)?.type;
    if (root === field || (type !== 'Pointer' && type !== 'Relation')) return [];
    return [
      { path, message: `does not hold for rows that '${root}' leads to; mask the field of their class` },
    ];
  });
}

/** Exposed on purpose, where other classes are kept apart by tenant. */
export function isExposedToEveryTenant(declared: DeclaredClass, policy: Policy): boolean {
  const exposed = declared.visible || declared.searchable !== null;
  return policy.hasTenantScopes && exposed && declared.hiding === 'no' && declared.tenantScope === null;
}

function unscoped(declared: DeclaredClass, policy: Policy): PolicyFault[] {
  if (!isExposedToEveryTenant(declared, policy)) return [];
  return [
    {
      path: pathOf(declared),
      message: 'no tenantScope, though other classes have one: every tenant reads its rows',
    },
  ];
}

function unreadable(declared: DeclaredClass, shapes: readonly AgentShape[]): PolicyFault[] {
  const scope = declared.tenantScope;
  // Where a claim or a function says which tenant it is, the agent's own says nothing.
  if (!scope || scope.from !== 'tenantId' || declared.hiding !== 'no') return [];
  const without = shapes.filter(
    ({ tenantId, permissions, classes }) =>
      tenantId === null && !tierBypasses(scope, permissions) && classes.permits(declared.className),
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

/** Where names are strict, they are errors and told as such. */
function lenientNames(
  shape: AgentShape,
  policy: Policy,
  tools: ReadonlySet<string>,
  schemas: SchemaSnapshot | null,
): PolicyFault[] {
  const classes = schemas && new Set(schemas.classNames());
  return unknownAgentNames(shape, policy, { tools, classes })
    .filter(({ strict }) => !strict)
    .map(({ agent, path, message }) => ({ path: `agents.${agent}.${path}`, message }));
}

function unknownInShape(shape: AgentShape, schemas: SchemaSnapshot): PolicyFault[] {
  const path = `agents.${shape.name}`;
  const named = [...(shape.classes.except ?? [])].filter((name) => !schemas.get(name));
  return named.map((name) => ({
    path: `${path}.classes`,
    message: absent(name, 'class', schemas.classNames()),
  }));
}

/** Parse's own classes have their own defaults. */
function undeclared(policy: Policy, schemas: SchemaSnapshot): PolicyFault[] {
  const names = schemas.classNames().filter((name) => !policy.classes.has(name) && !isSystemClassName(name));
  if (names.length === 0) return [];
  const message = `not declared, so every agent whose classes filter permits them reads all their fields: ${names.join(', ')}`;
  return [{ path: 'policy.classes', message }];
}
