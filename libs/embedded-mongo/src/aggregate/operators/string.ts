import { codePoints } from '../../bson/code-points.js';
import { Binary, Code, Timestamp } from 'bson';
import { mongoError } from '../../errors.js';
import { compareStrings } from '../../bson/compare.js';
import { numberKind, toDouble } from '../../bson/number.js';
import { typeName } from '../../bson/type-name.js';
import { binary, intArgument, readNamedArguments, positional, unary, variadic } from '../arguments.js';
import { nullish, type Evaluator, type OperatorCompiler, type OperatorTable } from '../evaluate.js';
import { doubleString, stringForm } from './conversion.js';

/** Numbers, dates and code are accepted as strings by the older string operators; null counts as empty. */
function asText(value: unknown, name: string, code: number): string {
  if (nullish(value)) return '';
  if (typeof value === 'string') return value;
  if (value instanceof Code && !value.scope) return value.code;
  if (value instanceof Timestamp) {
    const [, day, month, , time] = new Date(value.t * 1000).toUTCString().split(' ');
    return `${month} ${day?.replace(/^0/, ' ')} ${time}:${value.i}`;
  }
  if (numberKind(value) === 'double') {
    const text = doubleString(toDouble(value), 6);
    return /N|I/.test(text) ? text.toLowerCase().replace('inity', '') : text;
  }
  const text = numberKind(value) !== undefined || value instanceof Date ? stringForm(value) : undefined;
  if (text === undefined)
    throw mongoError(code, `can't convert from BSON type ${typeName(value)} to String in ${name}`);
  return text;
}

const longestText = 16 * 1024 * 1024;

/** No stored string is longer; repeated doubling must end before the memory does. */
function checkLength(length: number, name: string): void {
  if (length > longestText)
    throw mongoError(146, `${name} would build a string of over ${longestText} characters`);
}

function checkText(text: string, name: string): string {
  checkLength(text.length, name);
  return text;
}

const upper = (text: string): string => text.replace(/[a-z]+/g, (part) => part.toUpperCase());
const lower = (text: string): string => text.replace(/[A-Z]+/g, (part) => part.toLowerCase());

const compileTrim =
  (start: boolean, end: boolean): OperatorCompiler =>
  (argument, builder, name) => {
    const { input, chars } = readNamedArguments<'input' | 'chars'>(
      argument,
      builder,
      name,
      ['input'],
      ['chars'],
    );
    return (scope) => {
      const value = input?.(scope);
      if (nullish(value)) return null;
      if (typeof value !== 'string')
        throw mongoError(50699, `${name} requires its input to be a string, got ${typeName(value)}`);
      const given = chars?.(scope);
      if (chars && nullish(given)) return null;
      if (chars && typeof given !== 'string')
        throw mongoError(50700, `${name} requires 'chars' to be a string, got ${typeName(given)}`);
      const drop = new Set(
        typeof given === 'string'
          ? given
          : '\0\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a',
      );
      const points = codePoints(value);
      let from = 0;
      let to = points.length;
      while (start && from < to && drop.has(points[from] as string)) from++;
      while (end && to > from && drop.has(points[to - 1] as string)) to--;
      return points.slice(from, to).join('');
    };
  };

/** Positions are counted in code points or in UTF-8 bytes. */
const compileIndexOf =
  (bytes: boolean): OperatorCompiler =>
  (argument, builder, name) => {
    const [input, search, first, last] = positional(argument, builder, name, 2, 4) as Evaluator[];
    return (scope) => {
      const text = input?.(scope);
      if (nullish(text)) return null;
      const wanted = search?.(scope);
      if (typeof text !== 'string')
        throw mongoError(
          bytes ? 40091 : 40093,
          `${name} requires a string as the first argument, found: ${typeName(text)}`,
        );
      if (typeof wanted !== 'string')
        throw mongoError(
          bytes ? 40092 : 40094,
          `${name} requires a string as the second argument, found: ${typeName(wanted)}`,
        );
      const from = first ? position(first(scope), name) : 0;
      const to = last ? position(last(scope), name) : Infinity;
      return bytes ? indexOfBytes(text, wanted, from, to) : indexOfPoints(text, wanted, from, to);
    };
  };

function indexOfBytes(text: string, wanted: string, from: number, to: number): number {
  const haystack = Buffer.from(text);
  const needle = Buffer.from(wanted);
  if (from > haystack.length) return -1;
  const found = needle.length === 0 ? from : haystack.indexOf(needle, from);
  return found >= 0 && found + needle.length <= to ? found : -1;
}

function indexOfPoints(text: string, wanted: string, from: number, to: number): number {
  const points = codePoints(text);
  if (from > points.length || from > to) return -1;
  const start = points.slice(0, from).join('').length;
  const found = text.indexOf(wanted, start);
  if (found < 0) return -1;
  const index = from + codePoints(text.slice(start, found)).length;
  return index + codePoints(wanted).length <= to ? index : -1;
}

function position(value: unknown, name: string): number {
  const index = intArgument(value, name, 40096, 'an index argument');
  if (index < 0) throw mongoError(40097, `${name} requires a nonnegative index, found: ${index}`);
  return index;
}

const substringPoints: OperatorCompiler = (argument, builder, name) => {
  const [input, first, length] = positional(argument, builder, name, 3) as [Evaluator, Evaluator, Evaluator];
  return (scope) => {
    const text = asText(input(scope), name, 16007);
    const start = intArgument(first(scope), name, 34450, 'its starting index');
    const count = intArgument(length(scope), name, 34452, 'its length');
    if (start < 0) throw mongoError(34455, `${name}: the starting index must be nonnegative integer.`);
    if (count < 0) throw mongoError(34454, `${name}: length must be a nonnegative integer.`);
    return codePoints(text)
      .slice(start, start + count)
      .join('');
  };
};

const substringBytes: OperatorCompiler = (argument, builder, name) => {
  const [input, first, length] = positional(argument, builder, name, 3) as [Evaluator, Evaluator, Evaluator];
  return (scope) => {
    const bytes = Buffer.from(asText(input(scope), name, 16007));
    const [start, count] = [Math.trunc(toDouble(first(scope))), Math.trunc(toDouble(length(scope)))];
    if (Number.isNaN(start)) throw mongoError(16034, `${name}:  starting index must be a numeric type`);
    if (Number.isNaN(count)) throw mongoError(16035, `${name}:  length must be a numeric type`);
    if (start < 0) throw mongoError(50752, `${name}: the starting index must be nonnegative`);
    // A negative length means the rest of the string.
    const end = count < 0 ? bytes.length : Math.min(bytes.length, start + count);
    for (const at of [start, end]) {
      if (at < bytes.length && ((bytes[at] as number) & 0xc0) === 0x80) {
        throw mongoError(
          at === start ? 28656 : 28657,
          `${name}:  Invalid range, it splits a UTF-8 character.`,
        );
      }
    }
    return bytes.subarray(start, end).toString();
  };
};

const compileReplace =
  (all: boolean): OperatorCompiler =>
  (argument, builder, name) => {
    const parts = readNamedArguments(argument, builder, name, ['input', 'find', 'replacement']);
    const evaluators = [parts.input, parts.find, parts.replacement] as [Evaluator, Evaluator, Evaluator];
    return (scope) => {
      const values = evaluators.map((one) => one(scope));
      for (const value of values) {
        if (!nullish(value) && typeof value !== 'string')
          throw mongoError(
            51746,
            `${name} requires that its arguments be strings, found: ${typeName(value)}`,
          );
      }
      if (values.some(nullish)) return null;
      const [input, find, replacement] = values as [string, string, string];
      if (!all)
        return checkText(
          input.replace(find, () => replacement),
          name,
        );
      const places = find === '' ? input.length + 1 : input.split(find).length - 1;
      checkLength(input.length + places * (replacement.length - find.length), name);
      return input.replaceAll(find, () => replacement);
    };
  };

export const stringOperators: OperatorTable = {
  $concat: variadic((values, name) => {
    let result = '';
    for (const value of values) {
      if (nullish(value)) return null;
      if (typeof value !== 'string')
        throw mongoError(16702, `${name} only supports strings, not ${typeName(value)}`);
      result += value;
    }
    return checkText(result, name);
  }),
  $toUpper: unary((value, name) => upper(asText(value, name, 16007))),
  $toLower: unary((value, name) => lower(asText(value, name, 16007))),
  $strcasecmp: binary((a, b, name) =>
    compareStrings(upper(asText(a, name, 16007)), upper(asText(b, name, 16007))),
  ),
  $strLenCP: unary((value, name) => {
    if (typeof value !== 'string')
      throw mongoError(34471, `${name} requires a string argument, found: ${typeName(value)}`);
    return codePoints(value).length;
  }),
  $strLenBytes: unary((value, name) => {
    if (typeof value !== 'string')
      throw mongoError(34473, `${name} requires a string argument, found: ${typeName(value)}`);
    return Buffer.byteLength(value);
  }),
  $binarySize: unary((value, name) => {
    if (nullish(value)) return null;
    if (typeof value === 'string') return Buffer.byteLength(value);
    if (value instanceof Binary) return value.length();
    throw mongoError(51276, `${name} requires a string or BinData argument, found: ${typeName(value)}`);
  }),
  $split: binary((value, separator, name) => {
    if (nullish(value) || nullish(separator)) return null;
    if (typeof value !== 'string')
      throw mongoError(
        40085,
        `${name} requires an expression that evaluates to a string as a first argument, found: ${typeName(value)}`,
      );
    if (typeof separator !== 'string')
      throw mongoError(
        40086,
        `${name} requires an expression that evaluates to a string as a second argument, found: ${typeName(separator)}`,
      );
    if (separator === '') throw mongoError(40087, `${name} requires a non-empty separator`);
    return value.split(separator);
  }),
  $trim: compileTrim(true, true),
  $ltrim: compileTrim(true, false),
  $rtrim: compileTrim(false, true),
  $indexOfCP: compileIndexOf(false),
  $indexOfBytes: compileIndexOf(true),
  $substrCP: substringPoints,
  $substrBytes: substringBytes,
  $substr: substringBytes,
  $replaceOne: compileReplace(false),
  $replaceAll: compileReplace(true),
};
