import { mongoError } from '../errors.js';

export const invalidPattern = (reason: string): Error =>
  mongoError(51091, `Regular expression is invalid: ${reason}`);

/** How hard a pattern can make a backtracking matcher work: at most `factor × length^exponent` steps. */
export interface Cost {
  readonly factor: number;
  readonly exponent: number;
  /** True when one text can be split among repetitions in several ways: exponential work. */
  readonly ambiguous: boolean;
}

export const constantCost: Cost = { factor: 1, exponent: 0, ambiguous: false };

const many = 32;
const budget = 2e7;

/** One part after the other: every choice of the first meets every choice of the second. */
export const inSequence = (a: Cost, b: Cost): Cost => ({
  factor: a.factor * b.factor,
  exponent: a.exponent + b.exponent,
  ambiguous: a.ambiguous || b.ambiguous,
});

export const inTurn = (a: Cost, b: Cost): Cost => ({
  factor: a.factor + b.factor,
  exponent: Math.max(a.exponent, b.exponent),
  ambiguous: a.ambiguous || b.ambiguous,
});

/** The cost of repeating an atom. An atom with choices of its own must not be repeated more than once. */
export function repeatCost(atom: Cost, min: number, max: number): Cost {
  const hasChoices = atom.factor > 1 || atom.exponent > 0;
  const spread = max - min + 1;
  return {
    factor: atom.factor * (spread > many ? 1 : spread),
    exponent: atom.exponent + (spread > many ? 1 : 0),
    ambiguous: atom.ambiguous || (hasChoices && max > 1),
  };
}

/** A few seconds: one match cannot be interrupted. */
const linearBudget = 2e7;

/** The same for a pattern of some size in the linear-time engine, whose work is size times length. */
export function longestLinearSubject(cost: Cost, size: number): number {
  const singlePath = cost.factor === 1 && cost.exponent === 0;
  return singlePath ? Infinity : Math.floor(linearBudget / size);
}

/** The longest text a pattern may be tried on by backtracking, from any start position; 0 means never. */
export function longestSubject(cost: Cost): number {
  if (cost.ambiguous || cost.factor > budget) return 0;
  return Math.floor((budget / cost.factor) ** (1 / (cost.exponent + 1)));
}

/** Character classes and single characters of a translated pattern, case folded where asked. */

const posix: Readonly<Record<string, string>> = {
  alpha: 'a-zA-Z',
  digit: '0-9',
  alnum: 'a-zA-Z0-9',
  upper: 'A-Z',
  lower: 'a-z',
  space: ' \\t-\\r',
  blank: ' \\t',
  punct: '!-\\/:-@\\[-`{-~',
  xdigit: '0-9A-Fa-f',
  word: '\\w',
  cntrl: '\\x00-\\x1f\\x7f',
  print: ' -~',
  graph: '!-~',
};

/** The members of `[:name:]`, or undefined for an unknown name. */
export const posixClass = (name: string): string | undefined =>
  Object.hasOwn(posix, name) ? posix[name] : undefined;

/** `\d`, `\w`, `\s` and their opposites: spaces are those of ASCII alone, unlike JavaScript's. */
export const perlClass = (letter: string): string =>
  letter === 's' ? ' \\t-\\r' : letter === 'S' ? `\\S${wideSpace}` : `\\${letter}`;

const wideSpace = '\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff';
export const horizontalSpace = '\\t \\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000';
export const verticalSpace = '\\n\\x0b\\f\\r\\x85\\u2028\\u2029';

/** A character written so that neither a class nor a sequence reads it as syntax. */
export function escapeCharacter(code: number): string {
  if (code > 0xffff) {
    const pair = String.fromCodePoint(code);
    return escapeCharacter(pair.charCodeAt(0)) + escapeCharacter(pair.charCodeAt(1));
  }
  const text = String.fromCharCode(code);
  if (/[A-Za-z0-9_ ]/.test(text)) return text;
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** The other cases of a character, so that folding needs no engine flag. */
export function caseVariants(code: number): number[] {
  const text = String.fromCodePoint(code);
  const found = new Set([code]);
  for (const other of [text.toLowerCase(), text.toUpperCase()]) {
    const point = other.codePointAt(0);
    if (point !== undefined && String.fromCodePoint(point) === other) found.add(point);
  }
  return [...found];
}

/** A single character as an atom. */
export function characterAtom(code: number, foldCase: boolean): string {
  const variants = foldCase ? caseVariants(code) : [code];
  if (variants.length === 1) return code > 0xffff ? `(?:${escapeCharacter(code)})` : escapeCharacter(code);
  if (variants.some((variant) => variant > 0xffff)) return `(?:${variants.map(escapeCharacter).join('|')})`;
  return `[${variants.map(escapeCharacter).join('')}]`;
}

/** A range inside a class with the other cases of its members. */
export function foldRange(from: number, to: number): string {
  const plain = `${escapeCharacter(from)}-${escapeCharacter(to)}`;
  // A range this wide covers both cases of the scripts inside it.
  if (to - from > 0x800) return plain;
  const extra = new Set<number>();
  for (let code = from; code <= to; code++) {
    for (const variant of caseVariants(code)) if (variant < from || variant > to) extra.add(variant);
  }
  return plain + [...extra].map(escapeCharacter).join('');
}

/** A PCRE pattern in JavaScript's syntax, with what the matcher must know about it. */
export interface TranslatedRegex {
  readonly source: string;
  readonly multiline: boolean;
  /** Case folding that could not be spelled out in the source, for back-references. */
  readonly foldByFlag: boolean;
  /** Only readable with the `u` flag (property classes, characters past the BMP in a class). */
  readonly needsUnicode: boolean;
  /** Has atoms that count characters, so text with surrogate pairs needs the `u` flag. */
  readonly countsCharacters: boolean;
  /** Ends a line by `$`, which PCRE also accepts before a final newline. */
  readonly endsLine: boolean;
  readonly groups: number;
  readonly cost: Cost;
}

/** One translated part of a pattern. */
export interface Atom {
  readonly source: string;
  readonly cost: Cost;
  /** True when it consumes nothing, so a quantifier after it would mean little. */
  readonly assertion?: boolean;
}

/** A part that matches in one way only. */
export const plain = (source: string): Atom => ({ source, cost: constantCost });

/** The least and the most repetitions a quantifier allows. Errors: 51091 for impossible counts. */
export function repetition(text: string, match: RegExpExecArray): [number, number] {
  if (text === '*') return [0, Infinity];
  if (text === '+') return [1, Infinity];
  if (text === '?') return [0, 1];
  const min = Number(match[1]);
  const max = match[2] === '' ? min : match[3] === '' ? Infinity : Number(match[3]);
  if (min > 65535 || (max !== Infinity && max > 65535))
    throw invalidPattern('number too big in {} quantifier');
  if (max < min) throw invalidPattern('numbers out of order in {} quantifier');
  return [min, max];
}

/** Options in force at some place of a pattern. */
export interface Modes {
  readonly fold: boolean;
  readonly multiline: boolean;
  readonly dotAll: boolean;
  readonly extended: boolean;
}

/** The options a whole pattern starts with, from letters such as "im". */
export const readModes = (options: string): Modes => ({
  fold: options.includes('i'),
  multiline: options.includes('m'),
  dotAll: options.includes('s'),
  extended: options.includes('x'),
});

/** Reads `i-x` of `(?i-x)`. `m` is a flag of the whole pattern, so it may only lead. Errors: 51091. */
export function changeModes(modes: Modes, flags: string, leading: boolean): Modes {
  const [on = '', off = ''] = flags.split('-');
  if (!/^[imsx]*$/.test(on + off)) throw invalidPattern(`unsupported inline option (?${flags})`);
  if (!leading && (on + off).includes('m'))
    throw invalidPattern('(?m) is supported at the start of a pattern only');
  const read = (flag: string, before: boolean): boolean =>
    on.includes(flag) || (before && !off.includes(flag));
  return {
    fold: read('i', modes.fold),
    multiline: read('m', modes.multiline),
    dotAll: read('s', modes.dotAll),
    extended: read('x', modes.extended),
  };
}
