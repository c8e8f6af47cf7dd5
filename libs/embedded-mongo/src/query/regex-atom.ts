import { constantCost, type Cost } from './regex-cost.js';
import { invalidPattern } from './regex-reader.js';

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
