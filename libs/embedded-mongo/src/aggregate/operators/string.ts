import { Binary, BSONRegExp, Code, Decimal128, Timestamp } from 'bson';
import { compareStrings } from '../../bson/compare.js';
import { coerceInteger, isInt32, numberKind, toDouble } from '../../bson/number.js';
import { codePoints } from '../../bson/text.js';
import { typeName } from '../../bson/type-name.js';
import { mongoError } from '../../errors.js';
import { type CompiledRegex, compileRegex, isRegex, type RegexMatch } from '../../query/regex.js';
import {
  binary,
  binaryOrNull,
  indexArgument,
  intArgument,
  named,
  requireNumber,
  requireText,
  several,
  unary,
  unaryOrNull,
  variadic,
} from '../arguments.js';
import { doubleString, stringForm } from './conversion.js';
import { checkText } from '../memory.js';
import { type Builder, nullish, type OperatorCompiler, type OperatorTable } from '../evaluate.js';

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

const upper = (text: string): string => text.replace(/[a-z]+/g, (part) => part.toUpperCase());
const lower = (text: string): string => text.replace(/[A-Z]+/g, (part) => part.toLowerCase());

const spaces = '\0\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a';

const compileTrim = (start: boolean, end: boolean): OperatorCompiler =>
  named(['input'], ['chars'], ({ input, chars = spaces }, name) => {
    if (nullish(input)) return null;
    const points = codePoints(requireText(input, name, 50699));
    if (chars === null) return null;
    const drop = new Set(requireText(chars, `'chars' of ${name}`, 50700));
    let from = 0;
    let to = points.length;
    while (start && from < to && drop.has(points[from] as string)) from++;
    while (end && to > from && drop.has(points[to - 1] as string)) to--;
    return points.slice(from, to).join('');
  });

/** Positions are counted in code points or in UTF-8 bytes. */
const compileIndexOf = (bytes: boolean): OperatorCompiler =>
  several(2, 4, ([value, search, ...ends], name) => {
    if (nullish(value)) return null;
    const text = requireText(value, name, bytes ? 40091 : 40093);
    const wanted = requireText(search, name, bytes ? 40092 : 40094);
    const [from = 0, to = Infinity] = ends.map((end) => indexArgument(end, name));
    return bytes ? indexOfBytes(text, wanted, from, to) : indexOfPoints(text, wanted, from, to);
  });

function indexOfBytes(text: string, wanted: string, from: number, to: number): number {
  const haystack = Buffer.from(text);
  const needle = Buffer.from(wanted);
  if (from > haystack.length) return -1;
  const found = needle.length === 0 ? from : haystack.indexOf(needle, from);
  return found >= 0 && found + needle.length <= to ? found : -1;
}

function indexOfPoints(text: string, wanted: string, from: number, to: number): number {
  const points = codePoints(text);
  const end = Math.min(points.length, to);
  if (text === wanted && from === 0) return 0;
  if (from >= end) return -1;
  const start = points.slice(0, from).join('').length;
  const found = text.indexOf(wanted, start);
  if (found < 0) return -1;
  const index = from + codePoints(text.slice(start, found)).length;
  return index < end ? index : -1;
}

const substringPoints = several(3, 3, ([text, first, length], name) => {
  const points = codePoints(asText(text, name, 16007));
  const start = intArgument(first, name, 34450, 'its starting index');
  const count = intArgument(length, name, 34452, 'its length');
  if (start < 0) throw mongoError(34455, `${name}: the starting index must be nonnegative integer.`);
  if (count < 0) throw mongoError(34454, `${name}: length must be a nonnegative integer.`);
  return points.slice(start, start + count).join('');
});

const substringBytes = several(3, 3, ([text, first, length], name) => {
  const bytes = Buffer.from(asText(text, name, 16007));
  const start = byteCount(requireNumber(first, `The starting index of ${name}`, 16034));
  const count = byteCount(requireNumber(length, `The length of ${name}`, 16035));
  if (start < 0) throw mongoError(50752, `${name}: the starting index must be nonnegative`);
  // A negative length means the rest of the string.
  const end = count < 0 ? bytes.length : Math.min(bytes.length, start + count);
  for (const at of [start, end]) {
    if (at < bytes.length && ((bytes[at] as number) & 0xc0) === 0x80)
      throw mongoError(at === start ? 28656 : 28657, `${name} splits a UTF-8 character`);
  }
  return bytes.subarray(start, end).toString();
});

/** A decimal past 32 bits counts as negative. Errors: 31109 for a double past them. */
function byteCount(value: unknown): number {
  const count = coerceInteger(value);
  if (isInt32(count + 0) || numberKind(value) === 'long') return count;
  if (value instanceof Decimal128) return -1;
  throw mongoError(31109, "Can't coerce out of range value to int");
}

const compileReplace = (all: boolean): OperatorCompiler =>
  named(['input', 'find', 'replacement'], [], (parts, name) => {
    const values = [parts.input, parts.find, parts.replacement];
    for (const value of values) if (!nullish(value)) requireText(value, name, 51746);
    if (values.some(nullish)) return null;
    const [input, find, replacement] = values as [string, string, string];
    const places = !all ? 1 : find === '' ? input.length + 1 : input.split(find).length - 1;
    checkText(input.length + places * (replacement.length - find.length));
    if (!all) return input.replace(find, () => replacement);
    if (find === '') return [replacement, ...codePoints(input).map((point) => point + replacement)].join('');
    return input.replaceAll(find, () => replacement);
  });

interface Search {
  readonly text: string;
  readonly regex: CompiledRegex;
}

/** Patterns of expressions are shorter than those of filters. */
const MAX_PATTERN = 16 * 1024;

/** An operator of `{input, regex, options}`; `search` is undefined when input or pattern is null. */
const compileSearch = (answer: (search: Search | undefined, builder: Builder) => unknown): OperatorCompiler =>
  named(['input', 'regex'], ['options'], ({ input: text, regex, options }, name, builder) => {
    if (!nullish(text) && typeof text !== 'string')
      throw mongoError(51104, `${name} needs 'input' to be of type string, found: ${typeName(text)}`);
    if (!nullish(regex) && typeof regex !== 'string' && !isRegex(regex))
      throw mongoError(51105, `${name} needs 'regex' to be of type string or regex`);
    if (!nullish(options) && typeof options !== 'string')
      throw mongoError(51106, `${name} needs 'options' to be of type string`);
    if (!nullish(options) && regex instanceof BSONRegExp && regex.options !== '')
      throw mongoError(51107, `${name}: found regex options specified in both 'regex' and 'options' fields`);
    if (typeof regex === 'string' && Buffer.byteLength(regex) > MAX_PATTERN)
      throw mongoError(51111, `${name} has a pattern of over ${MAX_PATTERN} bytes`);
    const compiled = nullish(regex) ? undefined : compileRegex(regex, options ?? undefined);
    return answer(typeof text === 'string' && compiled ? { text, regex: compiled } : undefined, builder);
  });

const describe = (match: RegexMatch, idx: number): object => ({
  match: match.text,
  idx,
  captures: match.captures,
});

const find = (found: Search | undefined): object | null => {
  const match = found?.regex.exec(found.text, 0);
  return found && match ? describe(match, codePoints(found.text.slice(0, match.index)).length) : null;
};

function findAll(found: Search | undefined, { ctx }: Builder): object[] {
  const matches: object[] = [];
  if (!found) return matches;
  let from = 0;
  let counted = { position: 0, points: 0 };
  do {
    ctx.tick();
    const match = found.regex.exec(found.text, from);
    if (!match) break;
    // Counted on from the last match, so that many matches do not count the text many times.
    const points = counted.points + codePoints(found.text.slice(counted.position, match.index)).length;
    counted = { position: match.index, points };
    matches.push(describe(match, points));
    from = match.index + (match.text.length || 1);
  } while (from < found.text.length);
  return matches;
}

export const stringOperators: OperatorTable = {
  $concat: variadic((values, name) => {
    let result = '';
    for (const value of values) {
      if (nullish(value)) return null;
      result += requireText(value, name, 16702);
      checkText(result.length);
    }
    return result;
  }),
  $toUpper: unary((value, name) => upper(asText(value, name, 16007))),
  $toLower: unary((value, name) => lower(asText(value, name, 16007))),
  $strcasecmp: binary((a, b, name) =>
    compareStrings(upper(asText(a, name, 16007)), upper(asText(b, name, 16007))),
  ),
  $strLenCP: unary((value, name) => codePoints(requireText(value, name, 34471)).length),
  $strLenBytes: unary((value, name) => Buffer.byteLength(requireText(value, name, 34473))),
  $binarySize: unaryOrNull((value, name) =>
    value instanceof Binary ? value.length() : Buffer.byteLength(requireText(value, name, 51276)),
  ),
  $split: binaryOrNull((value, separator, name) => {
    const text = requireText(value, name, 40085);
    const mark = requireText(separator, `The separator of ${name}`, 40086);
    if (mark === '') throw mongoError(40087, `${name} requires a non-empty separator`);
    return text.split(mark);
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
  $regexMatch: compileSearch((found) => found !== undefined && found.regex.test(found.text)),
  $regexFind: compileSearch(find),
  $regexFindAll: compileSearch(findAll),
};
