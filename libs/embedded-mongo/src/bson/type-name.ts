import { badValue, createParseError } from '../errors.js';
import { bsonTag } from './document.js';
import { isInt32, numberKind, toDouble } from './number.js';

const numbers: Readonly<Record<string, number>> = {
  double: 1,
  string: 2,
  object: 3,
  array: 4,
  binData: 5,
  undefined: 6,
  objectId: 7,
  bool: 8,
  date: 9,
  null: 10,
  regex: 11,
  dbPointer: 12,
  javascript: 13,
  symbol: 14,
  javascriptWithScope: 15,
  int: 16,
  timestamp: 17,
  long: 18,
  decimal: 19,
  minKey: -1,
  maxKey: 127,
};

const tagNames: Readonly<Record<string, string>> = {
  ObjectId: 'objectId',
  Long: 'long',
  Double: 'double',
  Int32: 'int',
  Decimal128: 'decimal',
  Binary: 'binData',
  Timestamp: 'timestamp',
  BSONRegExp: 'regex',
  BSONSymbol: 'symbol',
  MinKey: 'minKey',
  MaxKey: 'maxKey',
};

/** The BSON type of a value as `$type` names it; "missing" for an absent field. */
export function typeName(value: unknown): string {
  switch (typeof value) {
    case 'undefined':
      return 'missing';
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    case 'number':
      return isInt32(value) ? 'int' : 'double';
    case 'bigint':
    case 'function':
    case 'object':
    case 'symbol':
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (value instanceof Date) return 'date';
  if (value instanceof Uint8Array) return 'binData';
  const tag = bsonTag(value as object);
  if (tag === 'Code') return (value as { scope?: unknown }).scope ? 'javascriptWithScope' : 'javascript';
  return tag === undefined ? 'object' : (tagNames[tag] ?? 'object');
}

/** The type's number on the wire. */
export const typeNumber = (value: unknown): number => numbers[typeName(value)] ?? 6;

/** Reads the argument of `$type`: an alias or a number, one or many; "number" stands for all four. */
export function typeMatcher(argument: unknown): (value: unknown) => boolean {
  const wanted = new Set<number>();
  for (const item of Array.isArray(argument) ? argument : [argument]) {
    for (const type of readTypeNumbers(item)) wanted.add(type);
  }
  if (wanted.size === 0) throw badValue('$type must match at least one type');
  return (value) => value !== undefined && wanted.has(typeNumber(value));
}

/** The name of one type, given by its alias or its number. Errors: 2 for an unknown alias, 9 for anything else. */
export function readTypeName(item: unknown): string {
  if (typeof item === 'string' && !Object.hasOwn(numbers, item)) throw badValue(`Unknown type name: ${item}`);
  const name =
    typeof item === 'string' ? item : Object.keys(numbers).find((alias) => numbers[alias] === toDouble(item));
  if (name === undefined) throw createParseError('A type is given by its name or its number');
  return name;
}

function readTypeNumbers(item: unknown): number[] {
  if (typeof item === 'string') {
    if (item === 'number') return [1, 16, 18, 19];
    const type = numbers[item];
    if (type === undefined || !Object.hasOwn(numbers, item))
      throw badValue(`Unknown type name alias: ${item}`);
    return [type];
  }
  if (numberKind(item) === undefined) throw badValue('type must be represented as a number or a string');
  const type = toDouble(item);
  if (!Object.values(numbers).includes(type)) throw badValue(`Invalid numerical type code: ${type}`);
  return [type];
}
