import { Binary } from 'bson';
import { mongoError } from '../../errors.js';
import { numberKind, toBigInt, toDouble, wholeNumber, longValue, doubleValue } from '../../bson/number.js';
import { storedBytes } from '../../bson/value-order.js';
import { typeName } from '../../bson/type-name.js';

/** How binary data reads as text, and how numbers are laid out in bytes. */
export interface BinaryForm {
  readonly format: BinaryFormat | undefined;
  readonly byteOrder: ByteOrder;
  readonly subtype: unknown;
}

const formats = ['auto', 'base64', 'base64url', 'hex', 'utf8', 'uuid'] as const;
const byteOrders = ['little', 'big'] as const;
type BinaryFormat = (typeof formats)[number];
type ByteOrder = (typeof byteOrders)[number];

const uuidLength = 16;
const uuidForm = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
const textForms: Readonly<Partial<Record<BinaryFormat, RegExp>>> = {
  base64: /^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/,
  base64url: /^(?:[\w-]{4})*(?:[\w-]{2}(?:==)?|[\w-]{3}=?)?$/,
  hex: /^(?:[\da-f]{2})*$/i,
  utf8: /^/,
};

/** Errors: 4341114 and 4341125 for a format, 9130001 and 9130002 for an order that there is not. */
export function readBinaryForm(format: unknown, byteOrder: unknown, subtype: unknown): BinaryForm {
  return {
    format: choice(format, formats, 'format', [4341114, 4341125]),
    byteOrder: choice(byteOrder, byteOrders, 'byteOrder', [9130001, 9130002]) ?? 'little',
    subtype,
  };
}

function choice<Name extends string>(
  value: unknown,
  names: readonly Name[],
  what: string,
  [notText, unknown]: readonly [number, number],
): Name | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string')
    throw mongoError(notText, `$convert requires that '${what}' be a string, found: ${typeName(value)}`);
  const found = names.find((name) => name === value);
  if (!found) throw mongoError(unknown, `Invalid '${what}' argument for $convert: ${value}`);
  return found;
}

function readSubtype(subtype: unknown): number {
  if (numberKind(subtype) === undefined)
    throw mongoError(4341108, `'subtype' of $convert is a number, not ${typeName(subtype)}`);
  const type = wholeNumber(subtype);
  if (type === undefined)
    throw mongoError(4341106, "In $convert, numeric 'subtype' argument is not an integer");
  if (type < 0 || (type > 9 && type < Binary.SUBTYPE_USER_DEFINED) || type > 255) {
    throw mongoError(4341107, `$convert has no subtype ${type}`);
  }
  return type;
}

function requireFormat({ format }: BinaryForm, from: string, to: string): BinaryFormat {
  if (format) return format;
  throw mongoError(4341115, `Format must be specified when converting from '${from}' to '${to}'`);
}

/** Bytes of a text, a number or bytes of the same subtype; undefined for what cannot be converted. */
export function toBinary(value: unknown, form: BinaryForm): Binary | undefined {
  const format = typeof value === 'string' ? requireFormat(form, 'string', 'binData') : undefined;
  const bytes = typeof value === 'string' ? undefined : bytesOfNumber(value, form.byteOrder);
  if (!format && !bytes && !(value instanceof Binary)) return undefined;
  const subtype = readSubtype(form.subtype);
  if (value instanceof Binary) return value.sub_type === subtype ? value : undefined;
  if (bytes) return new Binary(bytes, subtype);
  if (!format || (format === 'uuid') !== (subtype === Binary.SUBTYPE_UUID)) return undefined;
  const text = value as string;
  if (format === 'uuid')
    return uuidForm.test(text)
      ? new Binary(Buffer.from(text.replaceAll('-', ''), 'hex'), subtype)
      : undefined;
  if (format === 'auto' || !textForms[format]?.test(text)) return undefined;
  return new Binary(Buffer.from(text, format), subtype);
}

function bytesOfNumber(value: unknown, order: ByteOrder): Buffer | undefined {
  const bytes = Buffer.alloc(numberKind(value) === 'int' ? 4 : 8);
  switch (numberKind(value)) {
    case 'int':
      bytes.writeInt32LE(toDouble(value));
      break;
    case 'long':
      bytes.writeBigInt64LE(toBigInt(value));
      break;
    case 'double':
      bytes.writeDoubleLE(toDouble(value));
      break;
    case 'decimal':
    case undefined:
      return undefined;
  }
  return order === 'big' ? bytes.reverse() : bytes;
}

/** Text of bytes; undefined for bytes that are none in this format. */
export function binaryText(value: Binary, form: BinaryForm): string | undefined {
  const format = requireFormat(form, 'binData', 'string');
  const bytes = Buffer.from(storedBytes(value));
  const uuid = value.sub_type === Binary.SUBTYPE_UUID && bytes.length === uuidLength;
  if (format === 'uuid' || (format === 'auto' && uuid)) return uuid ? value.toUUID().toString() : undefined;
  const text = bytes.toString(format === 'auto' ? 'base64' : format);
  if (format === 'hex') return text.toUpperCase();
  return format === 'utf8' && !Buffer.from(text).equals(bytes) ? undefined : text;
}

/** The number in bytes; undefined for a length that no number of the type has. */
export function numberOfBytes(
  value: Binary,
  to: 'int' | 'long' | 'double',
  { byteOrder }: BinaryForm,
): unknown {
  const bytes = Buffer.from(storedBytes(value));
  if (byteOrder === 'big') bytes.reverse();
  const { length } = bytes;
  if (to === 'double') {
    if (length === 4) return doubleValue(bytes.readFloatLE());
    return length === 8 ? doubleValue(bytes.readDoubleLE()) : undefined;
  }
  if (to === 'long' && length === 8) return longValue(bytes.readBigInt64LE());
  if (![1, 2, 4].includes(length)) return undefined;
  const whole = bytes.readIntLE(0, length);
  return to === 'int' ? whole : longValue(BigInt(whole));
}
