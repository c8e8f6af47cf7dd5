import { cutText, Refused, refuse } from '#core';
import {
  type ClassSchema,
  type FieldSchema,
  type FieldType,
  memberField,
  type StorageForm,
} from './class-schema.js';
import {
  isBase64,
  isDateLike,
  isPlainObject,
  isTyped,
  parseIsoDate,
  reduceTyped,
  toTypedDate,
} from './where.js';
import { isNameable, suggestNames, takeRoot } from './field-names.js';
import { NON_FINITE } from './written-values.js';

/** What is known of the values of a column or an expression. Undefined stands for: nothing. */
export interface ValueType {
  /** `Null`: a value that is only ever absent, and so of any other type as well. */
  readonly type: FieldType | 'Null';
  /** Other values are possible: it comes from a sample of documents, or from a default of another type. */
  readonly uncertain?: boolean;
  /** A number may be written as its digits: documents of other programs hold numbers that JSON does not have. */
  readonly digits?: boolean;
  /** Texts that are dates where a date is expected, as they were written; the text itself where there is one. */
  readonly iso?: string | true;
  /** Of an Array: its entries. */
  readonly entries?: ValueType | undefined;
  /** Of an Object: its members. */
  readonly member?: (name: string) => ValueType | undefined;
}

const simple = (type: ValueType['type']): ValueType => Object.freeze({ type });

export const NULL = simple('Null');
export const DATE = simple('Date');
export const NUMBER = simple('Number');
export const BOOLEAN = simple('Boolean');
export const TEXT = simple('String');

export const toListType = (entries: ValueType | undefined): ValueType => ({ type: 'Array', entries });
/** A member is worked out once: its type may rest on those of many stages before. */
export function toObjectType(member: NonNullable<ValueType['member']>): ValueType {
  const known = new Map<string, ValueType | undefined>();
  return {
    type: 'Object',
    member: (name) => {
      if (!known.has(name)) known.set(name, member(name));
      return known.get(name);
    },
  };
}

/** The type of a column, as far as every value of it has that type. */
function columnType(field: FieldSchema | undefined, storage: StorageForm | undefined): ValueType | undefined {
  if (!field) return undefined;
  const { type, members, entries, origin, seen, opaque } = field;
  if (opaque) return undefined;
  const types = Object.keys(seen ?? {}).filter((name) => name !== 'Null');
  if (types.length > 1) return undefined;
  const certainty = origin === 'sample' && { uncertain: true };
  if (type === 'Number' && storage === 'plain') return { type, digits: true, ...certainty };
  const inside = members && toObjectType((name) => columnType(members.get(name), storage));
  if (type === 'Array') return { type, entries: inside ?? columnType(entries, storage), ...certainty };
  return { type, ...(type === 'Object' && inside), ...certainty };
}

const STAMPS: ReadonlySet<string> = new Set(['createdAt', 'updatedAt']);

/** The type of a column of a class, by its wire name. The ids of a plain class are also compared with numbers. */
export function typeOfColumn(name: string, schema: ClassSchema | undefined): ValueType | undefined {
  const isPlain = schema?.storage === 'plain';
  if (isPlain && name === 'objectId') return undefined;
  const field = schema?.fields.get(name);
  if (!field && !isPlain && STAMPS.has(name)) return DATE;
  return columnType(field, schema?.storage);
}

/** Of the rows of a plain class: every text in them is text, at any depth. */
export const ALL_TEXT: ValueType = {
  type: 'String',
  get entries() {
    return ALL_TEXT;
  },
  member: () => ALL_TEXT,
};

export function typeOfRows(schema: ClassSchema): ValueType {
  if (schema.storage === 'plain') return ALL_TEXT;
  const types = new Map([...schema.fields.keys()].map((name) => [name, typeOfColumn(name, schema)]));
  return toObjectType((name) => types.get(name));
}

/** The type below a type, by a path. In an expression a path through a list gives a list, in a filter it stands for each entry. */
export function typeAt(
  type: ValueType | undefined,
  path: readonly string[],
  inExpression: boolean,
): ValueType | undefined {
  let found = type;
  let isList = false;
  for (const name of path) {
    while (found?.type === 'Array') {
      found = found.entries;
      isList = true;
    }
    if (inExpression || !/^\d+$/.test(name)) found = found?.member?.(name);
  }
  return isList && inExpression && found ? toListType(found) : found;
}

/** The type that all of these have; values that are absent have any. A written date counts as a date beside one. */
export function commonType(types: readonly (ValueType | undefined)[]): ValueType | undefined {
  const present = types.filter((type) => type?.type !== 'Null');
  const [first] = present;
  if (present.length === 0) return types.length > 0 ? NULL : undefined;
  const date = present.find((type) => type?.type === 'Date');
  if (date && present.every((type) => type?.type === 'Date' || type?.iso !== undefined))
    return withSharedCertainty(date, present);
  if (!first || present.some((type) => type?.type !== first.type)) return undefined;
  if (first.type === 'Array') return toListType(commonType(present.map((type) => type?.entries)));
  if (first.type === 'Object' && present.length > 1)
    return toObjectType((name) => commonType(present.map((type) => type?.member?.(name))));
  return withSharedCertainty(first, present);
}

/** What holds of every one of them. */
function withSharedCertainty(type: ValueType, all: readonly (ValueType | undefined)[]): ValueType {
  const { iso, ...known } = type;
  const uncertain = all.some((each) => each?.uncertain) && { uncertain: true };
  if (iso === undefined || all.some((each) => each?.iso === undefined)) return { ...known, ...uncertain };
  return { ...known, ...uncertain, iso: all.every((each) => each?.iso === iso) ? iso : true };
}

/** Where a value is compared: what it is compared with, in words for the caller, and where remarks for the answer go. */
export interface Comparison {
  readonly with: string;
  readonly note?: Note | undefined;
}

/** Takes a remark that is shown beside the answer. */
export type Note = (text: string) => void;

/** Columns that rows have whatever their class declares. */
const OF_EVERY_ROW = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL']);

/** Notes that a name means no column, or one whose values no condition matches. */
export function noteColumn(
  path: string,
  {
    schema,
    readable,
  }: { readonly schema?: ClassSchema | undefined; readonly readable: ReadonlySet<string> | null },
  note: Note | undefined,
): void {
  if (!note || !schema) return;
  const root = takeRoot(path);
  const field = schema.fields.get(root);
  if (field?.opaque)
    note(
      `'${shortenText(root)}' holds values of a type (DBRef, code or the like) that conditions do not match and include does not follow. ` +
        'Only a whole DBRef, written as it is shown, is found: {"collection": …, "id": …}',
    );
  // Where some columns may not be read, the note would tell them from those that are not there. Parse keeps some under names of
  // its own.
  if (readable !== null || root.startsWith('_') || schema.fields.size === 0) return;
  if (schema.storage === 'plain') return noteUnseen(path, schema, note);
  if (field === undefined && !OF_EVERY_ROW.has(root))
    note(
      `class '${schema.className}' has no field '${shortenText(root)}': ${suggest(root, schema.fields)}get_schema lists those it has`,
    );
}

/** Documents of plain collections may have columns that no declaration names and no sample saw. */
function noteUnseen(path: string, { className, fields }: ClassSchema, note: Note): void {
  const [root = '', ...inside] = path.split('.');
  if (root === 'objectId') return;
  const field = fields.get(root);
  const known = inside.length > 0 ? memberField(field, inside.slice(0, -1))?.members : undefined;
  const isUnseen =
    field === undefined || (known && !/^\d+$/.test(inside.at(-1) ?? '') && !memberField(field, inside));
  if (!isUnseen) return;
  const near = suggest(inside.at(-1) ?? root, field === undefined ? fields : (known ?? fields));
  note(
    `'${shortenText(field === undefined ? root : path)}' is no column that is known of class '${className}': ${near}get_schema lists those that are, and ` +
      'documents may hold others',
  );
}

function suggest(name: string, fields: ReadonlyMap<string, FieldSchema>): string {
  const known = [...fields].flatMap(([column, { origin }]) =>
    isNameable(column, origin, null) ? [column] : [],
  );
  const [near] = name === 'id' ? ['objectId'] : suggestNames(name, known);
  return near === undefined ? '' : `did you mean '${near}'? `;
}

export const NUMBER_TEXT = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * A written value in the form in which it is compared with values of a type: for `where` and for every expression. ISO text is
 * a date beside dates.
 * @throws Refused `invalid_query` for a value that no value of the type can ever match. Where other values are possible, or
 * nothing is known, the answer carries a note instead
 */
export function compareValue(value: unknown, type: ValueType | undefined, at: Comparison): unknown {
  if (value === null || value === undefined) return value;
  if (value instanceof Date) return compareValue(toTypedDate(value), type, at);
  if (!type || type.type === 'Null') return unknownBeside(value, at);
  const kind = KINDS[type.type];
  if (kind === undefined) {
    // What a declaration says of members is known where the value is stored.
    if (type.type !== 'Array') return type.member ? value : unknownBeside(value, at);
    if (!Array.isArray(value)) return compareValue(value, type.entries, at);
    return value.map((entry) => compareValue(entry, type.entries, at));
  }
  const read = kind.read(value, type);
  if (read !== undefined) return read;
  if (!type.uncertain) throw neverMatches(value, kind, at);
  at.note?.(
    `'${shortenText(at.with)}' held ${kind.plural} in the documents that were looked at, and ${quoteValue(value)} is ${kind.no}`,
  );
  return value;
}

const isLargeInteger = (text: string): boolean =>
  /^-?\d{16,19}$/.test(text) &&
  !Number.isSafeInteger(Number(text)) &&
  BigInt.asIntN(64, BigInt(text)) === BigInt(text);

interface Kind {
  readonly a: string;
  readonly plural: string;
  readonly no: string;
  /** What to write instead. */
  readonly write: (value: unknown) => string;
  /** Undefined: it never matches. */
  readonly read: (value: unknown, type: ValueType) => unknown;
}

const KINDS: Readonly<Partial<Record<ValueType['type'], Kind>>> = {
  Date: {
    a: 'a date',
    plural: 'dates',
    no: 'no date',
    write: (value) =>
      `compare it with ISO 8601 text, such as 2024-01-31${isPlainObject(value) ? ', or {"$gte":"2024-01-31","$lt":"2024-02-01"}' : ''}`,
    read: (value) => {
      if (typeof value !== 'string')
        return isTyped(value) && value.__type === 'Date' ? reduceTyped(value) : undefined;
      const date = parseIsoDate(value);
      return date ? toTypedDate(date) : undefined;
    },
  },
  Number: {
    a: 'a number',
    plural: 'numbers',
    no: 'no number',
    write: (value) =>
      typeof value === 'string' && NUMBER_TEXT.test(value)
        ? `write ${shortenText(value)} without quotes`
        : 'compare it with a number, such as 5',
    read: (value, { digits }) => {
      if (typeof value === 'number' || typeof value === 'bigint') return value;
      if (typeof value !== 'string') return undefined;
      // JSON has no such numbers: they are the same texts as in answers.
      if (NON_FINITE.has(value)) return value;
      if (!NUMBER_TEXT.test(value)) return undefined;
      // A 64-bit integer that no JSON number holds exactly can only be written as text.
      return digits || isLargeInteger(value) ? value : undefined;
    },
  },
  Bytes: {
    a: 'binary data',
    plural: 'binary data',
    no: 'no base64 text',
    write: () => 'compare it with {"__type":"Bytes","base64":"…"}, of all of its bytes',
    read: (value) => {
      if (typeof value === 'string') return isBase64(value) ? { __type: 'Bytes', base64: value } : undefined;
      return isTyped(value) && value.__type === 'Bytes' ? reduceTyped(value) : undefined;
    },
  },
  Boolean: {
    a: 'true or false',
    plural: 'true or false',
    no: 'neither',
    write: () => 'compare it with true or false, without quotes',
    read: (value) => (typeof value === 'boolean' ? value : undefined),
  },
  String: {
    a: 'a text',
    plural: 'texts',
    no: 'no text',
    write: (value) =>
      typeof value === 'number' || typeof value === 'boolean'
        ? `write "${value}" in quotes`
        : 'compare it with a text',
    read: (value) => (typeof value === 'string' ? value : undefined),
  },
};

/** Whether values of the type are no texts, so that no pattern matches one. @throws Refused */
export function assertMayBeText(type: ValueType | undefined, at: Comparison): void {
  const kind = type && type.type !== 'String' && !type.uncertain ? KINDS[type.type] : undefined;
  if (!kind) return;
  const instead =
    type?.type === 'Date'
      ? 'compare it by $gte and $lt with ISO 8601 text, such as 2024-01-31'
      : kind.write(null);
  throw refuse.invalidQuery(`'${shortenText(at.with)}' is ${kind.a}, and $regex matches texts: ${instead}`);
}

/** Whether every value is one of a type without members. */
export const isScalarType = (type: ValueType | undefined): boolean =>
  type !== undefined && !type.uncertain && KINDS[type.type] !== undefined;

/** Notes that a path leads into values that have no members. */
export function noteMember(type: ValueType | undefined, member: string, at: Comparison): void {
  const kind = type && isScalarType(type) ? KINDS[type.type] : undefined;
  if (kind)
    at.note?.(
      `'${shortenText(at.with)}' is ${kind.a}, and has no member '${shortenText(member)}': ${kind.write(null)}`,
    );
}

/** Why an operator of lists finds no value of the type; undefined: it may. */
export function describeNoList(
  type: ValueType | undefined,
  operator: string,
  path: string,
): string | undefined {
  const kind = type && isScalarType(type) ? KINDS[type.type] : undefined;
  return (
    kind &&
    `'${shortenText(path)}' is ${kind.a}, and ${shortenText(operator)} asks for lists: ${kind.write(null)}`
  );
}

function neverMatches(value: unknown, kind: Kind, at: Comparison): Refused {
  const none =
    typeof value === 'string' && kind === KINDS.Date && isDateLike(value)
      ? `${quoteValue(value)} is a day or time that does not exist`
      : kind.write(value) + (Array.isArray(value) ? ', and with one of several by {"$in":[…]}' : '');
  return refuse.invalidQuery(`'${shortenText(at.with)}' is ${kind.a}: ${none}`);
}

/** A text that could be meant as a date is compared as text. */
function unknownBeside(value: unknown, at: Comparison): unknown {
  if (Array.isArray(value)) return value.map((entry) => unknownBeside(entry, at));
  if (isPlainObject(value) && !isTyped(value))
    for (const member of Object.values(value)) unknownBeside(member, at);
  const date = typeof value === 'string' && at.note ? parseIsoDate(value) : null;
  if (date)
    at.note?.(
      `${quoteValue(value)} was compared as text with '${shortenText(at.with)}', whose type is not known. For a date write ` +
        JSON.stringify(toTypedDate(date)),
    );
  return value;
}

/** Names and values are the caller's own. */
const shortenText = (text: string): string => cutText(text, 128);

function quoteValue(value: unknown): string {
  if (typeof value === 'string') return `'${cutText(value, 64)}'`;
  if (Array.isArray(value)) return 'a list';
  return isPlainObject(value)
    ? isTyped(value)
      ? `a ${shortenText(value.__type)}`
      : 'an object'
    : String(value);
}
