import type { GovernedClass } from '#data';
import {
  type ClassLevelPermissions,
  type FieldSchema,
  fieldsNamed,
  isInternalField,
  type PropertyPolicy,
  takeRoot,
  isPlainName,
} from '#policy';
import type { DeclaredMethod } from '../methods/method-declaration.js';
import { hardenDescriptions, hardenSchemaText, type SchemaTextOptions } from '../shaping/untrusted-text.js';
import { simplify } from '../shaping/presented-rows.js';

const TYPE_NAMES = new Map<string, string>([
  ['String', 'string'],
  ['Number', 'number'],
  ['Boolean', 'boolean'],
  ['Date', 'date/time'],
  ['Object', 'object (JSON)'],
  ['Array', 'array'],
  ['GeoPoint', 'geo location'],
  ['File', 'file'],
  ['Pointer', 'pointer (reference)'],
  ['Relation', 'relation (many-to-many)'],
  ['Bytes', 'binary data'],
  ['Polygon', 'polygon (geo shape)'],
  ['ACL', 'access control list'],
]);

/** How to constrain a pointer: agents otherwise guess storage forms that match nothing. */
function pointerHint(field: string, target: string): string {
  return (
    `Pointer to ${target}. Equality: {"${field}":"<objectId>"} or ` +
    `{"${field}":{"__type":"Pointer","className":"${target}","objectId":"<objectId>"}}. ` +
    `$in/$nin: {"${field}":{"$in":["<objectId>"]}} with bare objectIds.`
  );
}

/**
 * A default value to describe. A default that names a class is left out, because the class may be hidden from the
 * agent.
 */
function toDefault({ defaultValue }: FieldSchema): unknown {
  if (defaultValue === undefined || defaultValue === null || defaultValue === '') return undefined;
  return JSON.stringify(defaultValue).includes('"className"') ? undefined : simplify(defaultValue);
}

function describeAllowedValues(property: PropertyPolicy | undefined, text: SchemaTextOptions) {
  return [...(property?.enum ?? [])].map(([value, description]) => ({
    value,
    ...(description !== '' && { description: hardenSchemaText(description, text) }),
  }));
}

interface FieldContext {
  /** By wire name. */
  readonly properties: ReadonlyMap<string, PropertyPolicy>;
  readonly largeFields: readonly string[];
  /** Classes that the agent may read; another target class is described as an unnamed reference. */
  readonly knownClasses: ReadonlySet<string>;
  /** No tenant and no filter limits the rows: how often a type was seen counts rows that others could not read. */
  readonly readsEveryRow: boolean;
  readonly text: SchemaTextOptions;
}

/** One entry of get_schema's `fields`. */
export function describeField(name: string, schema: FieldSchema, context: FieldContext) {
  const { type, required = false } = schema;
  const isList = type === 'Array';
  const targetClass = schema.targetClass ?? (isList ? context.properties.get(name)?.targetClass : undefined);
  const isReference = type === 'Pointer' || type === 'Relation';
  const target = targetClass !== undefined && context.knownClasses.has(targetClass) ? targetClass : null;
  const typeName = TYPE_NAMES.get(type) ?? type.toLowerCase();
  const property = context.properties.get(name);
  const values = describeAllowedValues(property, context.text);
  const initial = toDefault(schema);
  return {
    name,
    type: (isReference || isList) && target !== null ? `${typeName} → ${target}` : typeName,
    required,
    ...(schema.origin === 'sample' && {
      inferred: true,
      ...(schema.seen && context.readsEveryRow && { seen: schema.seen }),
    }),
    ...describeMembers(schema, context),
    ...(initial !== undefined && { default: initial }),
    ...(property?.description && { description: hardenSchemaText(property.description, context.text) }),
    ...(values.length > 0 && { allowed_values: values }),
    ...(!isReference && context.largeFields.includes(name) && { large_field: true }),
    ...((isReference || isList) && target !== null && { target_class: target }),
    ...(type === 'Pointer' && { query_hint: pointerHint(name, target ?? '<targetClass>') }),
  };
}

const MAX_MEMBERS = 100;

/**
 * Path → type of what is inside a document, or inside the entries of a list, of a plain class. What only a sample shows may
 * stand in rows that the agent cannot read: keys of documents are data.
 */
function describeMembers(
  column: FieldSchema,
  context: FieldContext,
): { readonly members?: Readonly<Record<string, string>>; readonly members_note?: string } {
  const paths = [...memberPaths(column, '', context)];
  if (paths.length === 0) return {};
  return {
    members: Object.fromEntries(paths.slice(0, MAX_MEMBERS)),
    ...(paths.length > MAX_MEMBERS && {
      members_note: `The first ${MAX_MEMBERS} of ${paths.length}; get_object shows those of a row`,
    }),
  };
}

function* memberPaths(
  { members }: FieldSchema,
  prefix: string,
  context: FieldContext,
): Generator<[string, string]> {
  for (const [name, member] of members ?? []) {
    if (member.origin === 'sample' || !isPlainName(name) || isInternalField(name)) continue;
    const { type, targetClass } = member;
    const target = targetClass !== undefined && context.knownClasses.has(targetClass) ? targetClass : null;
    const typeName = TYPE_NAMES.get(type) ?? type.toLowerCase();
    yield [`${prefix}${name}`, target === null ? typeName : `${typeName} → ${target}`];
    yield* memberPaths(member, `${prefix}${name}.`, context);
  }
}

interface MethodContext {
  readonly text: SchemaTextOptions;
  /** Whether to include the keys that a method may write. */
  readonly showPermittedKeys: boolean;
}

/** Methods that the agent may call, in the form of get_schema. */
export function describeMethods(methods: readonly DeclaredMethod[], context: MethodContext) {
  return methods.map(
    ({ name, type, permission, description, supportsDryRun, parameters, permittedKeys }) => ({
      name,
      type,
      permission,
      ...(description && { description: hardenSchemaText(description, context.text) }),
      ...(supportsDryRun && { supports_dry_run: true }),
      ...(parameters && { parameters: hardenDescriptions(parameters, context.text) }),
      ...(context.showPermittedKeys && permittedKeys && { permitted_keys: permittedKeys }),
    }),
  );
}

const OPERATIONS = ['find', 'count', 'get', 'create', 'update', 'delete', 'addField'];

function principalName(key: string): string {
  if (key === '*') return 'public';
  if (key === 'requiresAuthentication') return 'authenticated';
  return key.startsWith('role:') ? key : `user:${key}`;
}

function principals(rule: unknown, readable: ReadonlySet<string>): string[] | null {
  if (typeof rule === 'boolean') return rule ? ['public'] : ['none'];
  if (rule === null || typeof rule !== 'object' || Array.isArray(rule)) return null;
  const { pointerFields, ...keys } = rule as Record<string, unknown>;
  const named = Object.keys(keys).filter((key) => keys[key] === true);
  const owners = (Array.isArray(pointerFields) ? pointerFields : []).filter((field) =>
    readable.has(field as string),
  );
  return [...named.map(principalName), ...owners.map((field) => `pointer:${field as string}`)];
}

/**
 * The class permissions as text. Only operations: `protectedFields` would name protected fields, and pointer
 * permissions are described for readable fields alone.
 */
export function describePermissions(
  permissions: ClassLevelPermissions | null,
  readable: ReadonlySet<string>,
): Record<string, string[]> {
  const described: Record<string, string[]> = {};
  for (const operation of OPERATIONS) {
    const names =
      permissions && Object.hasOwn(permissions, operation)
        ? principals(permissions[operation], readable)
        : null;
    if (names) described[operation] = names;
  }
  return described;
}

/**
 * The canonical filter of a class, so that a caller that opts out can write it in its own `where`. It may name columns
 * outside `fields`, whose values stay unreadable. It is null when it names a masked or protected column, or a class
 * that is hidden from the agent.
 */
export function showDefaultFilter(known: GovernedClass, knownClasses: ReadonlySet<string>) {
  const { canonicalFilter, names } = known.policy;
  if (canonicalFilter === null) return null;
  if (![...classesNamed(canonicalFilter)].every((className) => knownClasses.has(className))) return null;
  const named = fieldsNamed(canonicalFilter, names).map(takeRoot);
  return named.some((root) => isSecret(root, known)) ? null : canonicalFilter;
}

/** Masked or protected for any agent: the name of the column may then be secret. */
function isSecret(root: string, { fields, policy, schema }: GovernedClass): boolean {
  if (fields.includes(root)) return false;
  const listed = policy.fields === null ? schema.fields.has(root) : policy.fields.includes(root);
  // A field that the policy permits but that is not readable is withheld from this agent by permissions or a mask.
  if (listed || [...policy.masks.keys()].some((path) => takeRoot(path) === root)) return true;
  const guarded = schema.classLevelPermissions?.['protectedFields'] ?? {};
  return Object.values(guarded as object).some((names) => Array.isArray(names) && names.includes(root));
}

function* classesNamed(value: unknown): Generator<string> {
  if (value === null || typeof value !== 'object') return;
  for (const [key, member] of Object.entries(value)) {
    if (key === 'className') yield String(member);
    else yield* classesNamed(member);
  }
}
