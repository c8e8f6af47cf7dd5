import { badValue, createParseError } from '../errors.js';
import { bsonTag } from './document.js';
import { isInt32, numberKind, toDouble } from './number.js';

/** A type of BSON: its number on the wire, and the rank of its values among those of other types. */
interface BsonType {
  readonly name: string;
  readonly number: number;
  readonly rank: number;
}

const type = (name: string, number: number, rank: number): BsonType => ({ name, number, rank });

const types = {
  double: type('double', 1, 10),
  string: type('string', 2, 15),
  object: type('object', 3, 20),
  array: type('array', 4, 25),
  binData: type('binData', 5, 30),
  undefined: type('missing', 6, 0),
  objectId: type('objectId', 7, 35),
  bool: type('bool', 8, 40),
  date: type('date', 9, 45),
  null: type('null', 10, 5),
  regex: type('regex', 11, 50),
  dbPointer: type('dbPointer', 12, 55),
  javascript: type('javascript', 13, 60),
  symbol: type('symbol', 14, 15),
  javascriptWithScope: type('javascriptWithScope', 15, 65),
  int: type('int', 16, 10),
  timestamp: type('timestamp', 17, 47),
  long: type('long', 18, 10),
  decimal: type('decimal', 19, 10),
  minKey: type('minKey', -1, -1),
  maxKey: type('maxKey', 127, 127),
};

const tagged: Readonly<Record<string, BsonType>> = {
  ObjectId: types.objectId,
  Long: types.long,
  Double: types.double,
  Int32: types.int,
  Decimal128: types.decimal,
  Binary: types.binData,
  Timestamp: types.timestamp,
  BSONRegExp: types.regex,
  BSONSymbol: types.symbol,
  Code: types.javascript,
  MinKey: types.minKey,
  MaxKey: types.maxKey,
};

function typeIn(value: unknown): BsonType {
  switch (typeof value) {
    case 'undefined':
      return types.undefined;
    case 'string':
      return types.string;
    case 'boolean':
      return types.bool;
    case 'number':
      return isInt32(value) ? types.int : types.double;
    case 'bigint':
    case 'function':
    case 'object':
    case 'symbol':
  }
  if (value === null) return types.null;
  if (Array.isArray(value)) return types.array;
  if (value instanceof Date) return types.date;
  if (value instanceof Uint8Array) return types.binData;
  const tag = bsonTag(value as object);
  if (tag === 'Code' && (value as { scope?: unknown }).scope) return types.javascriptWithScope;
  return (tag === undefined ? undefined : tagged[tag]) ?? types.object;
}

/** The BSON type of a value as `$type` names it; "missing" for an absent field. */
export const typeName = (value: unknown): string => typeIn(value).name;

/** The type's number on the wire. */
const typeNumber = (value: unknown): number => typeIn(value).number;

/** Canonical BSON type order: types of one rank compare by value, others by rank. */
export const typeRank = (value: unknown): number => typeIn(value).rank;

const typeByAlias = (alias: string): BsonType | undefined =>
  Object.hasOwn(types, alias) ? types[alias as keyof typeof types] : undefined;

/** Reads the argument of `$type`: an alias or a number, one or many; "number" stands for all four. */
export function typeMatcher(argument: unknown): (value: unknown) => boolean {
  const wanted = new Set<number>();
  for (const item of Array.isArray(argument) ? argument : [argument]) {
    for (const number of readTypeNumbers(item)) wanted.add(number);
  }
  if (wanted.size === 0) throw badValue('$type must match at least one type');
  return (value) => value !== undefined && wanted.has(typeNumber(value));
}

/** The name of one type, given by its alias or its number. Errors: 2 for an unknown alias, 9 for anything else. */
export function readTypeName(item: unknown): string {
  if (typeof item === 'string' && !typeByAlias(item)) throw badValue(`Unknown type name: ${item}`);
  const name =
    typeof item === 'string'
      ? item
      : Object.entries(types).find(([, { number }]) => number === toDouble(item))?.[0];
  if (name === undefined) throw createParseError('A type is given by its name or its number');
  return name;
}

function readTypeNumbers(item: unknown): number[] {
  if (item === 'number') return ['double', 'int', 'long', 'decimal'].flatMap(readTypeNumbers);
  if (typeof item === 'string') {
    const found = typeByAlias(item);
    if (!found) throw badValue(`Unknown type name alias: ${item}`);
    return [found.number];
  }
  if (numberKind(item) === undefined) throw badValue('type must be represented as a number or a string');
  const number = toDouble(item);
  if (!Object.values(types).some((known) => known.number === number))
    throw badValue(`Invalid numerical type code: ${number}`);
  return [number];
}
