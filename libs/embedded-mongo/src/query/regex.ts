import { setFlagsFromString } from 'node:v8';
import { BSONRegExp } from 'bson';
import { remember } from '../bson/remember.js';
import { badValue, mongoError } from '../errors.js';
import { longestLinearSubject, longestSubject, type TranslatedRegex } from './regex-parts.js';
import { translateRegex } from './regex-translate.js';

let isEnabled = false;

/**
 * The linear-time engine, for patterns and texts that could stall the other one. Not before the first pattern: V8 takes no code cache
 * that a process wrote after its flags changed.
 */
export function enableLinearEngine(): void {
  if (isEnabled) return;
  isEnabled = true;
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
  setFlagsFromString('--enable-experimental-regexp-engine');
}

/** A match: where it begins (in UTF-16 units), its text, and its groups in order, null when unset. */
export interface RegexMatch {
  readonly index: number;
  readonly text: string;
  readonly captures: (string | null)[];
}

export interface CompiledRegex {
  readonly pattern: string;
  readonly options: string;
  /** Errors: 51091 for a text too long for a pattern that cannot run in linear time. */
  test(text: string): boolean;
  /** The first match at or after a position. */
  exec(text: string, from: number): RegexMatch | null;
}

const maxPatternBytes = 32764;
const cacheSize = 500;

export const isRegex = (value: unknown): value is BSONRegExp | RegExp =>
  value instanceof BSONRegExp || value instanceof RegExp;

/**
 * Compiles a string or a regular expression value; `options` replace those of the value.
 * Errors: 51091 for a malformed or unsafe pattern, 51108 for an unknown option, 2 for other values.
 */
export function compileRegex(value: unknown, options?: unknown): CompiledRegex {
  const pattern = isRegex(value) ? (value instanceof RegExp ? value.source : value.pattern) : value;
  if (typeof pattern !== 'string') throw badValue('$regex has to be a string');
  if (options !== undefined && typeof options !== 'string') throw badValue('$options has to be a string');
  const inherited =
    value instanceof RegExp
      ? value.flags.replace(/[^imsx]/g, '')
      : value instanceof BSONRegExp
        ? value.options
        : '';
  if (options && inherited) throw mongoError(51075, 'options set in both $regex and $options');
  const flags = (options || inherited).split('').sort().join('');
  return compileOnce(`${flags}/${pattern}`);
}

const compileOnce = remember(cacheSize, (key) => {
  enableLinearEngine();
  const end = key.indexOf('/');
  return build(key.slice(end + 1), key.slice(0, end));
});

function build(pattern: string, options: string): CompiledRegex {
  const unknown = /[^imsxu]/.exec(options);
  if (unknown) throw mongoError(51108, `invalid flag in regex options: ${unknown[0]}`);
  if (pattern.includes('\0')) throw badValue('Regular expression cannot contain an embedded null byte');
  if (Buffer.byteLength(pattern) > maxPatternBytes)
    throw mongoError(51091, 'Regular expression is invalid: regular expression is too large');
  // Strings are UTF-8 in any case.
  const translated = translateRegex(pattern.replace(/^\(\*UTF8?\)/, ''), options);
  const plain = translated.needsUnicode ? undefined : guard(translated, false);
  let wide = plain ? undefined : guard(translated, true);
  const matcherFor = (text: string): Matcher => {
    if (plain && !(translated.countsCharacters && /[\ud800-\udfff]/.test(text))) return plain;
    return (wide ??= guard(translated, true));
  };
  const exec = (text: string, from: number): RegexMatch | null => {
    const match = matcherFor(text)(text, from);
    if (match || !endsWithNewline(translated, text)) return match;
    const shorter = text.slice(0, -1);
    return from > shorter.length ? null : matcherFor(shorter)(shorter, from);
  };
  return { pattern, options, exec, test: (text) => exec(text, 0) !== null };
}

/** PCRE lets `$` hold before a final newline, JavaScript does not. */
const endsWithNewline = (regex: TranslatedRegex, text: string): boolean =>
  regex.endsLine && !regex.multiline && text.endsWith('\n');

type Matcher = (text: string, from: number) => RegexMatch | null;

/** A matcher that cannot stall: linear by its engine, or refused beyond a length its cost allows. */
function guard(translated: TranslatedRegex, unicode: boolean): Matcher {
  const flags = (translated.multiline ? 'm' : '') + (translated.foldByFlag ? 'i' : '') + (unicode ? 'u' : '');
  const { source, cost } = translated;
  const regex = compile(source, `${flags}g`);
  const linear = linearTime(source, flags);
  // Short texts are faster by backtracking; on long ones it would take its time long before it gives up.
  const cheap = longestSubject(cost);
  const longest = linear ? longestLinearSubject(cost, source.length) : cheap;
  if (longest === 0)
    throw mongoError(51091, 'Regular expression is invalid: it can take exponential time on some texts');
  return (text, from) => {
    if (text.length > longest)
      throw mongoError(51091, `Regular expression takes too long on over ${longest} characters`);
    const engine = linear && text.length > cheap ? linear : regex;
    engine.lastIndex = from;
    const match = engine.exec(text);
    if (!match) return null;
    const captures: (string | null)[] = [];
    for (let group = 1; group <= translated.groups; group++)
      captures.push(match.groups?.[`g${group}`] ?? null);
    return { index: match.index, text: match[0], captures };
  };
}

function compile(source: string, flags: string): RegExp {
  try {
    return new RegExp(source, flags);
  } catch {
    throw mongoError(51091, 'Regular expression is invalid: it could not be compiled');
  }
}

/** The same expression in the linear-time engine; null for what that engine cannot run. */
function linearTime(source: string, flags: string): RegExp | null {
  try {
    return new RegExp(source, `${flags}gl`);
  } catch {
    return null;
  }
}
