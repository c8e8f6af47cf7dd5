import { isExactNumber, setOwn } from '#core';
import { DBRef, Decimal128, Double, Int32, Long, type ObjectId } from 'mongodb';
import {
  type FieldSchema,
  type IdKind,
  memberField,
  isPlainObject,
  isTyped,
  type TypedValue,
  NON_FINITE,
} from '#policy';
import { UnstorableValue } from '../errors.js';
import {
  type ColumnRef,
  type DateForm,
  isPointer,
  parsePointerString,
  pointerString,
  pointerTo,
  type ValueForm,
} from './class-storage.js';
import {
  at,
  toBinary,
  toCoordinates,
  toDate,
  exactNumber,
  fromGeoJson,
  toIdentifiers,
  inQuery,
  isPair,
  convertNestedObject,
  toRing,
} from './parse-values.js';
import {
  COMPUTED_NUMBER,
  isCertain,
  withKind,
  parseDecimal,
  DIGITS,
  HEX_ID,
  parseId,
  idText,
  isIdValue,
  isLong,
  isSpelledDouble,
  findKind,
  scalarFromStorage,
  type StoredKind,
  WHOLE,
} from './plain-scalars.js';
import { listForms, listIds } from './stored-forms.js';

const INT_RANGE = { least: -(2 ** 31), most: 2 ** 31 - 1 };

interface Reading {
  readonly dates: DateForm;
  /** A reference by id as it is shown. */
  readonly pointer: (className: string, id: string) => unknown;
  readonly keepKey?: (key: string) => boolean;
  /** Whole numbers that a pipeline computed are numbers where a number is exact. */
  readonly computed?: boolean;
}

function fromStorage(value: unknown, field: FieldSchema | undefined, reading: Reading): unknown {
  if (field?.type === 'GeoPoint' && field.origin !== 'sample' && isPair(value))
    return { __type: 'GeoPoint', latitude: value[1], longitude: value[0] };
  if (Array.isArray(value)) return value.map((entry) => fromStorage(entry, findEntry(field), reading));
  if (field?.targetClass !== undefined && isIdValue(value))
    return reading.pointer(field.targetClass, idText(value));
  if (findKind(field) === 'number' && isIdValue(value)) return idText(value);
  if (field?.type === 'File' && typeof value === 'string') return { __type: 'File', name: value };
  if (isPlainObject(value)) return documentFromStorage(value, field, reading);
  if (reading.computed && isLongValue(value)) return exactNumber(String(value));
  return scalarFromStorage(value, reading.dates);
}

const isLongValue = (value: unknown): boolean =>
  typeof value === 'bigint' || (value as { _bsontype?: unknown } | null)?._bsontype === 'Long';

/** Entries of a list have the target and the members of the list. */
function findEntry(list: FieldSchema | undefined): FieldSchema | undefined {
  return list?.type === 'Array' || list?.type === 'Pointer' ? list : undefined;
}

function documentFromStorage(
  value: Record<string, unknown>,
  field: FieldSchema | undefined,
  reading: Reading,
): unknown {
  const place = fromGeoJson(value);
  if (place) return place;
  const converted: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    if (reading.keepKey && !reading.keepKey(key)) continue;
    setOwn(converted, key, fromStorage(member, field?.members?.get(key), reading));
  }
  return converted;
}

/** A stored value as JSON in a row. */
export function plainValue(value: unknown, field: FieldSchema | undefined): unknown {
  return fromStorage(value, field, { dates: 'typed', pointer: pointerTo });
}

/** The value of a column. @throws UnstorableValue for one that does not fit its type */
export function plainToStorage(value: unknown, field: FieldSchema | undefined): unknown {
  if (value === null) return null;
  const kind = findKind(field);
  if (Array.isArray(value))
    return value.map((entry, index) => at(String(index), () => toMember(entry, field)));
  switch (field?.type) {
    case 'Pointer':
      return reference(value, field);
    case 'Number':
      return numberToStorage(value, kind);
    case 'Date':
      return toDate(isTyped(value) ? value['iso'] : value);
    case 'GeoPoint':
      if (kind === 'pair') return toCoordinates(value);
      break;
    case 'String':
      return textToStorage(value, kind);
    default:
      break;
  }
  if (isTyped(value)) return convertTyped(value);
  if (isPlainObject(value)) return documentToStorage(value, field);
  if (typeof value === 'string' && field === undefined) return value;
  if (value instanceof Date || ['string', 'number', 'boolean'].includes(typeof value)) return value;
  throw new UnstorableValue('', `a value of type ${typeof value} cannot be stored`);
}

/** An entry of a list column. @throws UnstorableValue */
export function toMember(entry: unknown, list: FieldSchema | undefined): unknown {
  if (list?.targetClass !== undefined) return entry === null ? null : reference(entry, list);
  if (isPlainObject(entry) && !isTyped(entry)) return documentToStorage(entry, list);
  const kind = findKind(list);
  if (typeof entry === 'string' && (kind === 'objectId' || kind === 'uuid'))
    return textToStorage(entry, kind);
  const exact = kind === 'decimal' || kind === 'long' || kind === 'double' || kind === 'int';
  if (exact && (typeof entry === 'string' || typeof entry === 'number')) return numberToStorage(entry, kind);
  return plainToStorage(entry, undefined);
}

function documentToStorage(
  value: Readonly<Record<string, unknown>>,
  field: FieldSchema | undefined,
): Record<string, unknown> {
  return convertNestedObject(value, (member, key) => plainToStorage(member, field?.members?.get(key)));
}

function reference(value: unknown, field: FieldSchema): unknown {
  if (!isTyped(value) || value.__type !== 'Pointer')
    throw new UnstorableValue('', `a Pointer to ${String(field.targetClass)} is expected`);
  const [className, objectId] = toIdentifiers(value);
  if (className !== field.targetClass)
    throw new UnstorableValue('', `a Pointer to ${className} does not fit ${String(field.targetClass)}`);
  const id = parseId(findIdKind(field), objectId);
  if (id === undefined) throw new UnstorableValue('', `no id of ${className}`);
  return id;
}

/** The ids of the target of a reference. */
function findIdKind(field: FieldSchema | undefined): IdKind {
  const kind = findKind(field);
  return kind === 'objectId' || kind === 'uuid' || kind === 'number' ? kind : 'string';
}

function convertTyped(value: TypedValue): unknown {
  switch (value.__type) {
    case 'Date':
      return toDate(value['iso']);
    case 'Bytes':
      return toBinary(value['base64']);
    case 'GeoPoint':
      return { type: 'Point', coordinates: toCoordinates(value) };
    case 'Polygon':
      return { type: 'Polygon', coordinates: [toRing(value['coordinates'])] };
    case 'File':
      if (typeof value['name'] !== 'string') throw new UnstorableValue('', 'a File needs a name');
      return value['name'];
    case 'Pointer':
      throw new UnstorableValue('', 'a Pointer is stored only where the configuration declares one');
    default:
      throw new UnstorableValue('', `a ${value.__type} cannot be stored`);
  }
}

function textToStorage(value: unknown, kind: StoredKind | null): unknown {
  if (typeof value !== 'string') throw new UnstorableValue('', 'a text is expected');
  if (kind !== 'objectId' && kind !== 'uuid') return value;
  const id = parseId(kind, value);
  const form = kind === 'objectId' ? '24 hexadecimal digits' : 'a UUID';
  if (id === undefined) throw new UnstorableValue('', `${form} in lower case are expected`);
  return id;
}

/** @throws UnstorableValue for a number that the kind cannot hold exactly */
export function numberToStorage(value: unknown, kind: StoredKind | null): unknown {
  const isText = typeof value === 'string';
  const text = isText ? value : typeof value === 'number' && Number.isFinite(value) ? String(value) : '';
  if (!DIGITS.test(text)) throw new UnstorableValue('', 'a number, or its digits as text, is expected');
  const number = Number(text);
  switch (kind) {
    case 'decimal':
      return parseDecimal(text) ?? unfit('a decimal of 34 digits');
    case 'long':
      return WHOLE.test(text) && isLong(text) ? Long.fromString(text) : unfit('a 64-bit whole number');
    case 'int':
      return WHOLE.test(text) && number >= INT_RANGE.least && number <= INT_RANGE.most
        ? new Int32(number)
        : unfit('a 32-bit whole number');
    case 'double':
      return isText && !isDouble(text) ? unfit('a double') : new Double(number);
    default:
      if (!isText || isExact(text)) return number;
      return WHOLE.test(text) && isLong(text)
        ? Long.fromString(text)
        : (parseDecimal(text) ?? unfit('a decimal of 34 digits'));
  }
}

const isExact = (text: string): boolean => typeof exactNumber(text) === 'number';
const isDouble = (text: string): boolean =>
  WHOLE.test(text) ? isExactNumber(text) || isSpelledDouble(text) : isExact(text);

function unfit(form: string): never {
  throw new UnstorableValue('', `the number is not ${form}`);
}

/** By a field: the same without what only a sample says of its parts. */
const certainFields = new WeakMap<FieldSchema, FieldSchema>();

/**
 * What a declaration or a validator says of a column. A sample decides no comparison: it has documents that the caller may not read,
 * and their types would choose what its own rows are compared with.
 */
function withoutGuesses(field: FieldSchema | undefined): FieldSchema | undefined {
  if (field === undefined || field.origin === 'sample') return undefined;
  const { members } = field;
  if (![...(members?.values() ?? [])].some((member) => withoutGuesses(member) !== member)) return field;
  let certain = certainFields.get(field);
  if (!certain) {
    const known = [...(members ?? [])].flatMap(([name, member]) => {
      const one = withoutGuesses(member);
      return one ? [[name, one] as const] : [];
    });
    certain = withKind({ ...field, members: new Map(known) }, findKind(field), isCertain(field));
    certainFields.set(field, certain);
  }
  return certain;
}

/** Values as other programs store them: references are bare ids, numbers keep their type, places are GeoJSON. */
export const PLAIN_VALUES: ValueForm = {
  pointersAreIds: true,

  operandToStorage(value, ref) {
    return inQuery(() => operand(value, withoutGuesses(ref.field)));
  },

  listForms(value, ref, negated) {
    const forms = listForms(value, this.operandToStorage(value, ref), withoutGuesses(ref.field), negated);
    const reference =
      withoutGuesses(ref.field) === undefined && isPlainObject(value) ? toDbRef(value) : undefined;
    return reference === undefined ? forms : [...forms, reference];
  },

  operandsToStorage(values, ref, negated) {
    return values.flatMap((value) => this.listForms(value, ref, negated));
  },

  literalToStorage: (value) => (isPointer(value) ? value.objectId : plainToStorage(value, undefined)),

  convertCompared: (value, ref) => inQuery(() => operand(value, withoutGuesses(ref?.field))),

  listIds: (value, { field }) =>
    typeof value === 'string' && withoutGuesses(field) === undefined ? listIds(value) : [],

  toMember({ field, form }: ColumnRef, path) {
    const member = memberField(field, path.split('.'));
    return { column: path, nested: true, undeclared: false, form, ...(member && { field: member }) };
  },

  asPointerColumn: (ref) => ref,

  resultFromStorage: (value, field, keepKey) =>
    fromStorage(value, field, {
      dates: 'text',
      pointer: pointerString,
      keepKey,
      computed: field === undefined || field === COMPUTED_NUMBER,
    }),
};

/** A value of another type than the column's is compared as it is, and so matches nothing. */
function operand(value: unknown, field: FieldSchema | undefined): unknown {
  if (typeof value === 'string') return operandOfText(value, field);
  if (typeof value === 'number')
    return field?.type === 'Number' && findKind(field) === 'decimal'
      ? numberToStorage(value, 'decimal')
      : value;
  if (isPointer(value)) return operandOfPointer(pointerString(value.className, value.objectId), field);
  if (Array.isArray(value)) return value.map((entry) => operand(entry, field));
  if (isTyped(value)) return convertTyped(value);
  if (!isPlainObject(value)) return plainToStorage(value, undefined);
  return documentToStorage(value, field);
}

/** A DBRef that is written as answers show it; undefined: it is none. */
function toDbRef({
  collection,
  id,
  database,
  ...others
}: Readonly<Record<string, unknown>>): DBRef | undefined {
  if (typeof collection !== 'string' || typeof id !== 'string' || Object.keys(others).length > 0)
    return undefined;
  const oid = parseId('objectId', id) ?? id;
  // Stored ids may be texts: the type of the driver names ObjectIds alone.
  return new DBRef(collection, oid as ObjectId, typeof database === 'string' ? database : undefined);
}

function operandOfText(text: string, field: FieldSchema | undefined): unknown {
  if (field?.targetClass !== undefined) return operandOfPointer(text, field);
  const kind = findKind(field);
  if (NON_FINITE.has(text) && field?.type === 'Number' && field.seen?.String === undefined)
    return kind === 'decimal' ? Decimal128.fromString(text) : Number(text);
  if (kind === 'double' && isSpelledDouble(text)) return Number(text);
  if (field?.type === 'Number' && field.seen?.String === undefined && DIGITS.test(text))
    return numberToStorage(text, kind === 'decimal' ? kind : null);
  return kind === 'objectId' || kind === 'uuid' || kind === 'number' ? (parseId(kind, text) ?? text) : text;
}

/** A pointer, `Class$id` or a bare id. */
function operandOfPointer(text: string, field: FieldSchema | undefined): unknown {
  const pointer = parsePointerString(text);
  const isOther = pointer && field?.targetClass !== undefined && pointer.className !== field.targetClass;
  if (isOther) return text;
  const id = pointer?.objectId ?? text;
  return parseId(field ? findIdKind(field) : HEX_ID.test(id) ? 'objectId' : 'string', id) ?? text;
}
