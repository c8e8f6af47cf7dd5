import { type Agent, type Refusal, Refused, refuse, readMoment } from '#core';
import { type ClassAccess, columnRefusal, isMasked } from '../model/class-access.js';
import type { ClassPolicy } from '../model/policy.js';
import { type ClassSchema, type FieldSchema, type IndexSchema, isIdFor } from '../model/class-schema.js';
import { isFieldName, takeRoot, toLowerCamel } from '../model/field-names.js';
import {
  blockFilter,
  isPlainObject,
  type PlainObject,
  type Where,
  isTyped,
  toTypedDate,
} from '../model/where.js';
import { findTornText, readObjectText, readWrittenValues, TORN_TEXT } from '../model/written-values.js';
import { withheldClassIn } from '../masking/withheld-objects.js';
import { isTenant, type TenantBinding, tenantValue } from '../scope/tenant.js';
import { assertAdmitted, findFixedValues } from './admitted-row.js';
import {
  assertDeclaredValue,
  assertFits,
  type FieldRules,
  findDeclaredType,
  inferFieldType,
} from './field-types.js';
import { assertFitsPlain, assertNotSetForTheWriter } from './plain-columns.js';
import {
  isNeverGiven,
  isNeverStored,
  isOperation,
  type CheckClass,
  refuseFields,
  convertValue,
} from './written-value.js';

type Column = Pick<FieldSchema, 'type' | 'members'>;

/** A value of a column with its dates as Parse writes them: answers show a date as text, and so is it given back. */
export function withTypedDates(value: unknown, column: Column | undefined): unknown {
  if (column?.type === 'Date' && typeof value === 'string') {
    const moment = readMoment(value);
    return moment === null ? value : toTypedDate(new Date(moment));
  }
  const { members } = column ?? {};
  if (!members) return value;
  const readEntry = (entry: unknown) =>
    isPlainObject(entry) && !isTyped(entry)
      ? mapMembers(entry, (member, name) => withTypedDates(member, members.get(name)))
      : entry;
  if (isOperation(value))
    return mapMembers(value, (member, name) =>
      name === 'objects' && Array.isArray(member) ? member.map(readEntry) : member,
    );
  return Array.isArray(value) ? value.map(readEntry) : readEntry(value);
}

const mapMembers = (
  object: Readonly<Record<string, unknown>>,
  map: (member: unknown, name: string) => unknown,
): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).map(([name, member]) => [name, map(member, name)]));

/** The maximum size of the `fields` argument as JSON, in bytes. */
const MAX_BYTES = 65_536;
const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]{0,127}$/;

export interface WriteContext {
  readonly agent: Agent;
  readonly access: ClassAccess;
  readonly policy: ClassPolicy;
  readonly operation: 'create' | 'update';
  readonly tenant: TenantBinding | null;
  /** Of a new row: what the filters of the class and of the agent admit. */
  readonly filter?: Where | undefined;
  /** All indexes of the class. Used when some field is masked for the agent. */
  readonly indexes: readonly IndexSchema[];
  /** The class gate for classes that pointers name. */
  readonly judgeClass: (className: string) => Refusal | null;
  /** Classes by their names: a class says which texts are ids of its rows. */
  readonly findSchema: (className: string) => ClassSchema | undefined;
}

/** A permitted write, in wire names. */
export interface WritePlan {
  readonly fields: Readonly<Record<string, unknown>>;
  /** The fields that the caller gave, without those that Parley adds. */
  readonly given: Readonly<Record<string, unknown>>;
  /** Columns that the class does not have yet. */
  readonly added: ReadonlyMap<string, FieldSchema>;
}

/**
 * Turns the fields of a caller into a write, or refuses: operators, size, names, tenant, allowlist, values, types, in that
 * order. Nothing is read from the database.
 * @throws Refused
 */
export function planWrite(written: unknown, context: WriteContext): WritePlan {
  const given = readFields(written);
  const { access, policy, operation, tenant, judgeClass } = context;
  const isPlain = access.schema?.storage === 'plain';
  if (!isPlainObject(given) || Object.keys(given).length === 0)
    return refuseFields('fields must be an object with at least one field');
  const values = readValues(given, context);
  assertSize(given);
  const fields: Record<string, unknown> = {};
  const asGiven: Record<string, unknown> = {};
  const added = new Map<string, FieldSchema>();
  const named = new Set<string>();
  for (const [written, converted] of Object.entries(values)) {
    const name = wireName(written, context);
    const known = access.schema?.fields.get(name) ?? findDeclaredType(policy.properties.get(name));
    const value = withTypedDates(converted, known ?? undefined);
    const column = findIdentity(name, access);
    if (named.has(column)) refuseFields(`${name} is given twice, under two spellings`);
    named.add(column);
    asGiven[name] = value;
    if (tenant?.field === name) {
      assertOwnTenant(tenant, value, access.className);
      continue;
    }
    assertWritable(written, name, access, policy);
    const rules: FieldRules = {
      column: access.schema?.fields.get(name),
      declared: policy.properties.get(name),
      // A class that is hidden except for the master key is named by no listing and no row either.
      mayName: (className) => judgeClass(className) === null && !isWithheldTarget(className, access),
    };
    const asked = isPlain ? plainType(name, value, rules) : assertFits(name, value, rules);
    if (asked && !rules.column) added.set(name, asked);
    fields[name] = value;
  }
  assertNoMaskedIndex(Object.keys(fields), context);
  if (operation === 'create') {
    if (tenant) fields[tenant.field] = tenantValue(tenant, access.schema?.fields.get(tenant.field));
    admitNewRow(fields, context);
    assertComplete(fields, access);
  } else if (Object.keys(fields).length === 0) {
    refuseFields('fields holds nothing that can be changed');
  }
  return { fields, given: asGiven, added };
}

/** The values that the filters admit alone are set. @throws Refused for a row that they do not admit */
function admitNewRow(fields: Record<string, unknown>, { access, filter = {} }: WriteContext): void {
  const written = new Set(Object.keys(fields));
  for (const [name, value] of findFixedValues(filter)) fields[name] ??= value;
  const defaults = [...(access.schema?.fields ?? [])].flatMap(([name, { defaultValue }]) =>
    defaultValue === undefined ? [] : [[name, defaultValue] as const],
  );
  const row = { ...Object.fromEntries(defaults), ...fields };
  assertAdmitted(access.className, filter, row, { written, schema: access.schema });
}

/** JSON text and Extended JSON as Parse's JSON. @throws Refused `invalid_argument` */
function readFields(written: unknown): unknown {
  try {
    return readWrittenValues(readObjectText(written));
  } catch (error) {
    if (error instanceof Refused) return refuseFields(error.refusal.message);
    throw error;
  }
}

/** Checks names and values that no class could take, before the rules of the class. */
const isWithheldTarget = (className: string, { withheld }: ClassAccess): boolean =>
  [...(withheld?.values() ?? [])].some((column) => column.className === className);

function readValues(
  given: PlainObject,
  { access, judgeClass, findSchema: schemaOf }: WriteContext,
): PlainObject {
  const deferred: string[] = [];
  const deferCheck: CheckClass = (className) => deferred.push(className);
  const values: Record<string, unknown> = {};
  const operator = Object.keys(given).find((key) => key.startsWith('$'));
  if (operator !== undefined) throw blockFilter('arguments', 'operator_in_value', operator);
  const isPlain = access.schema?.storage === 'plain';
  for (const [name, value] of Object.entries(given)) {
    if (isPlain) assertNotSetForTheWriter(name);
    if (isPlain ? !isFieldName(name) : !FIELD_NAME.test(name)) {
      refuseFields(
        isPlain
          ? 'field names have at most 128 characters, no dots, no $ and no leading _'
          : 'field names are a letter, then letters, digits and _, at most 128; no dots, no leading _',
      );
    }
    assertWellFormed(name, value);
    values[name] = convertValue(name, value, deferCheck, (id, className) => isIdFor(schemaOf(className), id));
    // A list operation reveals whether the list contained the value, a unique index whether another row has it.
    const guessed = access.mayHold ? withheldClassIn(value, access.mayHold.names) : null;
    if (guessed !== null) deferred.push(guessed);
  }
  // Checked last, so that a malformed write is refused as such whatever classes it names.
  for (const className of deferred) {
    const refusal = judgeClass(className);
    if (refusal) throw new Refused(refusal);
  }
  return values;
}

/** The database stores half of a surrogate pair as another character. */
function assertWellFormed(name: string, value: unknown): void {
  const torn = findTornText(value, name);
  if (torn !== null) refuseFields(`${torn} ${TORN_TEXT}`);
}

function assertSize(given: PlainObject): void {
  const bytes = Buffer.byteLength(JSON.stringify(given));
  if (bytes > MAX_BYTES) refuseFields(`fields takes ${bytes} bytes; at most ${MAX_BYTES} are permitted`);
}

function wireName(written: string, { access, agent }: WriteContext): string {
  const name = access.names.wireName(written);
  const camel = toLowerCamel(written);
  const isPlain = access.schema?.storage === 'plain';
  const isRefused = isPlain ? isNeverStored : isNeverGiven;
  const isName = (spelling: string) => (isPlain ? isFieldName(spelling) : FIELD_NAME.test(spelling));
  if ([written, name].some((spelling) => isRefused(spelling) || !isName(spelling)))
    refuseFields(`'${written}' may not be written`);
  if (name === 'password' || camel === 'password')
    refuseFields("'password' may not be written: passwords are set by signing up or resetting");
  const guarded = [name, camel].some((spelling) => spelling === 'emailVerified' || spelling === 'username');
  if (isParseUser(access) && guarded && agent.permissions !== 'admin')
    refuseFields(`'${written}' may not be written`);
  return name;
}

/** A plain class gets no new columns, and a column that leads to a withheld class is not known to the agent. */
function plainType(name: string, value: unknown, { column, declared }: FieldRules): null {
  assertFitsPlain(name, value, column);
  if (inferFieldType(value)) assertDeclaredValue(name, value, declared?.enum);
  return null;
}

/** Two new columns that differ in spelling only are the same one. */
function findIdentity(name: string, { schema }: ClassAccess): string {
  return schema && !schema.fields.has(name) ? toLowerCamel(name) : name;
}

/** Users of Parse sign up; a plain class of that name has no accounts of Parse's. */
const isParseUser = ({ className, schema }: ClassAccess): boolean =>
  className === '_User' && schema?.storage !== 'plain';

function assertOwnTenant(tenant: TenantBinding, value: unknown, className: string): void {
  if (isTenant(tenant, value)) return;
  throw refuse.accessDenied('tenant', `Tenant scope conflict on class '${className}'`, 'tenant_scope');
}

function assertWritable(written: string, name: string, access: ClassAccess, policy: ClassPolicy): void {
  // Only an allowlist can forbid a column that does not exist yet.
  if (policy.fields === null && !access.schema?.fields.has(name) && !isMasked(access, name)) return;
  const refusal = columnRefusal('Field', written, name, access);
  if (refusal) throw new Refused(refusal);
}

/** A unique index that accepts or rejects a row reveals values of other rows, also in masked columns. */
function assertNoMaskedIndex(written: readonly string[], { operation, access, indexes }: WriteContext): void {
  if (!access.masks) return;
  const telling = indexes.some((index) => {
    const { unique, uniquenessUnknown, sparse, partial, fields } = index;
    if (!unique && !uniquenessUnknown) return false;
    if (!fields.some((field) => isMasked(access, takeRoot(field)))) return false;
    // The index contains a new row even when its values are missing.
    const isEntered = partial || (unique && operation === 'create' && !sparse);
    return isEntered || fields.some((field) => written.includes(takeRoot(field)));
  });
  if (!telling) return;
  throw refuse.accessDenied(
    'fields',
    `A unique index of '${access.className}' covers a field that this agent may not read in clear: whether it takes a ` +
      'value would tell what other rows hold',
    'masked_field',
  );
}

/** A new row needs a value for every required column; the message does not name columns that the agent may not know. */
function assertComplete(fields: PlainObject, access: ClassAccess): void {
  const { schema, readable, className } = access;
  for (const [name, { required, defaultValue }] of schema?.fields ?? []) {
    const value = fields[name] ?? null;
    if (!required || defaultValue !== undefined) continue;
    if (value !== null && !(isOperation(value) && value.__op === 'Delete')) continue;
    refuseFields(
      readable && !readable.has(name)
        ? `${className} has a required field that this agent may not write`
        : `${name} is required`,
    );
  }
  if (isParseUser(access) && typeof fields['username'] !== 'string') refuseFields('username is required');
}
