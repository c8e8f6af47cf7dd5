import {
  type AgentDefinition,
  canonicalClassName,
  DEFAULT_FILTER,
  isParseClassName,
  isSystemClassName,
} from '#core';
import type { IndexSchema, SchemaSnapshot } from '../model/class-schema.js';
import { FieldNames, takeRoot, suggestNames } from '../model/field-names.js';
import { type DeclaredClass, keepsTenantsApart, type Policy, tierBypasses } from '../model/policy.js';
import type { PolicyIssue } from '../model/policy-issue.js';
import { isPlainObject } from '../model/where.js';

/**
 * Warnings about likely mistakes in a valid policy: typos and omissions that do not prevent a start.
 * @param tools the names of all tools
 * @param schemas the classes of the database; null when it could not be read: names are then not compared
 */
export function lintPolicy(
  policy: Policy,
  agents: Iterable<AgentDefinition>,
  tools: ReadonlySet<string>,
  schemas: SchemaSnapshot | null,
): PolicyIssue[] {
  const definitions = [...agents];
  return [
    ...[...policy.classes.values()].flatMap((declared) => [
      ...(schemas ? unknownNames(declared, schemas) : []),
      ...lintRenamed(declared),
      ...lintUndescribed(declared),
      ...idleMasks(declared, schemas),
      ...lintUnscoped(declared, policy),
      ...unreadable(declared, definitions),
      ...lintUnfilteredVectors(declared),
    ]),
    ...definitions.flatMap((definition) => lenientNames(definition, policy, tools, schemas)),
    ...definitions.flatMap((definition) => (schemas ? unknownInDefinition(definition, schemas) : [])),
    ...(listsNoClass(policy) ? [{ path: 'policy.classes', message: NO_CLASS_LISTED }] : []),
    ...(schemas ? lintUndeclared(policy, schemas) : []),
  ];
}

const toPath = ({ className }: DeclaredClass) => `policy.classes.${className}`;

function absent(name: string, what: string, known: readonly string[]): string {
  const [nearest] = suggestNames(name, known);
  return `the database has no ${what} '${name}'${nearest === undefined ? '' : `; did you mean '${nearest}'?`}`;
}

/** Unknown names that protect nothing; others prevent a start (`bindPolicy`). */
function unknownNames(declared: DeclaredClass, schemas: SchemaSnapshot): PolicyIssue[] {
  const { className, aliases, plain, properties } = declared;
  const schema = schemas.get(className);
  // What a database has that is away is not known.
  if (schemas.isAway?.(className)) return [];
  if (!schema && plain) {
    const message = `the database has no collection or view '${plain.collection}', so the class does not exist`;
    return [{ path: `${toPath(declared)}.collection`, message }];
  }
  if (!schema) return [{ path: toPath(declared), message: absent(className, 'class', schemas.classNames()) }];
  const names = new FieldNames(aliases, schema.fields);
  return [...properties.keys()]
    .filter((written) => names.column(written) === null)
    .map((written) => ({
      path: `${toPath(declared)}.properties`,
      message: absent(written, 'field', [...schema.fields.keys()]),
    }));
}

/** Names of Parse's own classes are known under one spelling in every database. */
function lintRenamed({ className, plain }: DeclaredClass): PolicyIssue[] {
  if (!plain || !isParseClassName(className)) return [];
  const bare = className.replace(/^_/, '');
  const message =
    `agents know the class as '${className}', the name of a class of Parse: ` +
    `give it another name, with collection: ${plain.collection}`;
  return [{ path: `policy.classes.${bare}`, message }];
}

function lintUndescribed(declared: DeclaredClass): PolicyIssue[] {
  if (declared.hiding !== 'no' || declared.description !== null) return [];
  return [{ path: toPath(declared), message: 'no description: agents see its name and fields alone' }];
}

/** Masks without effect: on fields outside the allowlist, or behind a pointer. */
function idleMasks(declared: DeclaredClass, schemas: SchemaSnapshot | null): PolicyIssue[] {
  const columns = schemas?.get(declared.className)?.fields;
  const names = new FieldNames(declared.aliases, columns ?? null);
  const readable = declared.fields && new Set(declared.fields.map((name) => names.wireName(name)));
  return [...declared.masks.keys()].flatMap((written): PolicyIssue[] => {
    const path = `${toPath(declared)}.masks.${written}`;
    const field = names.wirePath(written);
    const root = takeRoot(field);
    if (readable && !readable.has(root))
      return [{ path, message: `has no effect: '${root}' is not among fields, so nobody reads it` }];
    const type = columns?.get(root)?.type;
    if (root === field || (type !== 'Pointer' && type !== 'Relation')) return [];
    return [
      { path, message: `does not hold for rows that '${root}' leads to; mask the field of their class` },
    ];
  });
}

/** Whether the class is declared visible or searchable without a tenant scope, although other classes have one. */
export function isExposedToEveryTenant(declared: DeclaredClass, policy: Policy): boolean {
  const exposed = declared.visible || declared.searchable !== null;
  return (
    policy.hasTenantScopes && exposed && declared.hiding === 'no' && !keepsTenantsApart(declared, policy)
  );
}

function lintUnscoped(declared: DeclaredClass, policy: Policy): PolicyIssue[] {
  if (!isExposedToEveryTenant(declared, policy)) return [];
  return [
    {
      path: toPath(declared),
      message: 'no tenantScope, though other classes have one: every tenant reads its rows',
    },
  ];
}

/** Where the index cannot filter by tenant, the nearest rows of all tenants take the places of the caller's own. */
function lintUnfilteredVectors(declared: DeclaredClass): PolicyIssue[] {
  const { searchable, tenantScope, hiding } = declared;
  if (!searchable || !tenantScope || hiding !== 'no' || searchable.filterFields.includes(tenantScope.field))
    return [];
  const message =
    `does not contain '${tenantScope.field}', the field of tenantScope, so near rows of other tenants push out those of the ` +
    `caller: build the vector index with '${tenantScope.field}' as a filter field, and write filterFields: ` +
    `[${[...searchable.filterFields, tenantScope.field].join(', ')}]`;
  return [{ path: `${toPath(declared)}.searchable.filterFields`, message }];
}

/**
 * Unique indexes by which a writer of one tenant learns which values rows of others hold: the write does not go through.
 * @param indexes every index of each class that has a tenant scope
 */
export function lintUniqueIndexes(
  policy: Policy,
  indexes: ReadonlyMap<string, readonly IndexSchema[]>,
): PolicyIssue[] {
  return [...indexes].flatMap(([className, ofClass]) => {
    const field = policy.classes.get(className)?.tenantScope?.field;
    if (field === undefined) return [];
    return ofClass
      .filter(({ unique, fields }) => unique && !fields.includes(field) && fields.join() !== 'objectId')
      .map(({ name, fields }) => ({
        path: `policy.classes.${className}.tenantScope`,
        message:
          `the unique index '${name}' (${fields.join(', ')}) does not contain '${field}', so a write of one tenant that does not go ` +
          `through tells which values rows of others hold: make it (${[field, ...fields].join(', ')})`,
      }));
  });
}

function unreadable(declared: DeclaredClass, definitions: readonly AgentDefinition[]): PolicyIssue[] {
  const scope = declared.tenantScope;
  // With a claim or a function as its source, the scope does not use the agent's `tenantId`.
  if (!scope || scope.from !== 'tenantId' || declared.hiding !== 'no') return [];
  const without = definitions.filter(
    ({ tenantId, permissions, classes }) =>
      tenantId === null && !tierBypasses(scope, permissions) && classes.permits(declared.className),
  );
  if (without.length === 0) return [];
  const names = without.map(({ name }) => name).join(', ');
  return [
    {
      path: toPath(declared),
      message: `needs a tenant, and agents without tenantId cannot read it: ${names}`,
    },
  ];
}

/** Unknown names of agents that are not strict; strict ones are reported as errors. */
function lenientNames(
  definition: AgentDefinition,
  policy: Policy,
  tools: ReadonlySet<string>,
  schemas: SchemaSnapshot | null,
): PolicyIssue[] {
  const classes = schemas && new Set(schemas.classNames());
  return unknownAgentNames(definition, policy, { tools, classes })
    .filter(({ strict }) => !strict)
    .map(({ agent, path, message }) => ({ path: `agents.${agent}.${path}`, message }));
}

function unknownInDefinition(definition: AgentDefinition, schemas: SchemaSnapshot): PolicyIssue[] {
  const path = `agents.${definition.name}`;
  const named = [...(definition.classes.except ?? [])].filter((name) => !schemas.get(name));
  return named.map((name) => ({
    path: `${path}.classes`,
    message: absent(name, 'class', schemas.classNames()),
  }));
}

/** Whether agents reach no class at all: the policy names none that is not hidden, and others do not exist. */
export function listsNoClass({ classes, switches }: Policy): boolean {
  return (
    switches.unlistedClasses === 'refuse' && [...classes.values()].every(({ hiding }) => hiding === 'always')
  );
}

export const NO_CLASS_LISTED =
  'lists no class that agents may read, so they reach no data: `parley init` reads the database and writes a first policy ' +
  'for it (policy.unlistedClasses: allow shows every class of a Parse database)';

/** Classes of the database without a declaration. Those of Parse have defaults. */
function lintUndeclared(policy: Policy, schemas: SchemaSnapshot): PolicyIssue[] {
  if (policy.switches.unlistedClasses === 'refuse') return [];
  const names = schemas.classNames().filter((name) => !policy.classes.has(name) && !isSystemClassName(name));
  if (names.length === 0) return [];
  const message = `not declared, so every agent whose classes filter permits them reads all their fields: ${names.join(', ')}`;
  return [{ path: 'policy.classes', message }];
}

/** The existing names; null when they cannot be read now. */
export interface KnownNames {
  readonly tools: ReadonlySet<string> | null;
  readonly classes: ReadonlySet<string> | null;
}

/** A name in the limits of an agent that does not exist: most likely a typo. */
export interface UnknownName {
  readonly agent: string;
  /** Its path in the options of the agent, such as `tools` or `filters.Psot`. */
  readonly path: string;
  readonly option: 'tools' | 'classes' | 'filters';
  readonly message: string;
  readonly accepted: readonly string[];
  /** An error when the agent or the policy is strict for that option; otherwise a warning. */
  readonly strict: boolean;
}

/** Names that are listed when none is similar. */
const MOST_SHOWN = 40;

/** The unknown name, with the most similar one or the existing ones. */
function unknownNameText(what: string, name: string, known: readonly string[]): string {
  const [nearest] = suggestNames(name, known);
  if (nearest !== undefined) return `${what} '${name}'; did you mean '${nearest}'?`;
  const names = [...known].sort();
  const more = names.length > MOST_SHOWN ? ', …' : '';
  return `${what} '${name}'${names.length === 0 ? '' : `; there are: ${names.slice(0, MOST_SHOWN).join(', ')}${more}`}`;
}

/**
 * Names in `tools`, `classes.only` and `filters` that do not exist. Declared classes and those of Parse count as existing. The
 * names stay in effect: a filter under such a name limits the class as soon as it is created.
 */
export function unknownAgentNames(
  definition: AgentDefinition,
  policy: Policy,
  known: KnownNames,
): UnknownName[] {
  const { name: agent } = definition;
  const strictTools = definition.strictToolFilter ?? policy.switches.strictToolFilter;
  const strictClasses = definition.strictClassFilter ?? policy.switches.strictClassFilter;
  const { tools } = known;
  const classes = known.classes && new Set([...known.classes, ...policy.classes.keys()]);
  const isUnknown = (name: string) =>
    classes !== null && !classes.has(canonicalClassName(name)) && !isParseClassName(name);
  const written = new Set([...(definition.tools.only ?? []), ...(definition.tools.except ?? [])]);
  const of = (
    option: UnknownName['option'],
    path: string,
    message: string,
    names: ReadonlySet<string> | null,
  ) => ({
    agent,
    option,
    path,
    message,
    accepted: [...(names ?? [])].sort(),
    strict: option === 'tools' ? strictTools : strictClasses,
  });
  const isListed = policy.switches.unlistedClasses === 'refuse' ? 'policy.classes lists' : 'the database has';
  const noClass = (name: string) => unknownNameText(`${isListed} no class`, name, [...(classes ?? [])]);
  return [
    ...[...written]
      .filter((name) => tools !== null && !tools.has(name))
      .map((name) =>
        of('tools', 'tools', unknownNameText('no tool is named', name, [...(tools ?? [])]), tools),
      ),
    ...[...(definition.classes.only ?? [])]
      .filter(isUnknown)
      .map((name) => of('classes', 'classes', noClass(name), classes)),
    ...[...definition.filters.keys()]
      .filter((name) => name !== DEFAULT_FILTER && isUnknown(name))
      .map((name) => of('filters', `filters.${name}`, `limits nothing: ${noClass(name)}`, classes)),
  ];
}

/** The fields of its own class that a constraint names, as wire paths. */
export function fieldsNamed(constraint: unknown, names: FieldNames): string[] {
  if (!isPlainObject(constraint)) return [];
  return Object.entries(constraint).flatMap(([key, value]) => {
    if (!key.startsWith('$')) return [names.wirePath(key)];
    return Array.isArray(value) ? value.flatMap((branch) => fieldsNamed(branch, names)) : [];
  });
}
