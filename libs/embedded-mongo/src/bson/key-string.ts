import {
  Decimal128,
  Long,
  type Binary,
  type BSONRegExp,
  type Code,
  type ObjectId,
  type Timestamp,
} from 'bson';
import type { Collation } from './collation.js';
import { mongoError } from '../errors.js';
import { typeRank } from './type-name.js';
import { binaryBytes } from './value-order.js';
import { compareDecimals, decimalOfDouble, normalizeDecimal, type ExactDecimal } from './decimal.js';
import type { Document } from './document.js';
import { exactDecimal, toDouble } from './number.js';

/**
 * A string that is the same for two values exactly when they compare equal, whatever their numeric types.
 * For hash joins, grouping, sets and unique keys; it says nothing about order.
 */
export function toKey(value: unknown, collation?: Collation): string {
  switch (typeRank(value)) {
    case -1:
      return '<';
    case 0:
      return 'u';
    case 5:
      return '0';
    case 10:
      return `n${numberKey(value)}`;
    case 15:
      return `s${collation ? collation.key(String(value)) : String(value)}`;
    case 20:
      return documentKey(value as Document, collation);
    case 25:
      return arrayKey(value as unknown[], collation);
    case 30: {
      const binary = value as Binary | Uint8Array;
      const type = binary instanceof Uint8Array ? 0 : binary.sub_type;
      return `b${type}:${Buffer.from(binaryBytes(binary)).toString('base64')}`;
    }
    case 35:
      return `o${(value as ObjectId).toHexString()}`;
    case 40:
      return value === true ? 't' : 'f';
    case 45:
      return `d${Number(value)}`;
    case 47:
      return `T${(value as Timestamp).t}:${(value as Timestamp).i}`;
    case 50:
      return `r${frameText((value as BSONRegExp).pattern)}${(value as BSONRegExp).options}`;
    case 60:
    case 65: {
      const code = value as Code;
      return `c${frameText(code.code)}${code.scope ? toKey(code.scope) : ''}`;
    }
    default:
      return '>';
  }
}

/** Several keys as one: each part carries its length, so no two lists collide. */
export const keyOfAll = (values: readonly unknown[], collation?: Collation): string => {
  let key = '';
  for (const value of values) key += frameText(toKey(value, collation));
  return checkKeyLength(key);
};

const longestKey = 64 * 1024 * 1024;

/** Values that share parts many times over are small in memory and endless when written out. */
function checkKeyLength(key: string): string {
  if (key.length > longestKey) throw mongoError(10334, 'a value to compare is larger than any document');
  return key;
}

const frameText = (part: string): string => `${part.length}:${part}`;

function documentKey(doc: Document, collation?: Collation): string {
  let key = '{';
  for (const name of Object.keys(doc)) key += frameText(name) + frameText(toKey(doc[name], collation));
  return checkKeyLength(`${key}}`);
}

function arrayKey(items: unknown[], collation?: Collation): string {
  return `[${keyOfAll(items, collation)}]`;
}

function numberKey(value: unknown): string {
  if (!(value instanceof Long) && !(value instanceof Decimal128)) return String(toDouble(value) + 0);
  const double = toDouble(value);
  const exact = exactDecimal(value);
  if (typeof exact === 'number') return String(exact);
  if (Number.isFinite(double) && compareDecimals(exact, decimalOfDouble(double)) === 0)
    return String(double + 0);
  return exactKey(exact);
}

function exactKey(exact: ExactDecimal): string {
  const { coefficient, exponent } = normalizeDecimal(exact);
  return `${coefficient}E${exponent}`;
}
