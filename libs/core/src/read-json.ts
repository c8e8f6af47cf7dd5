import { cutText } from './text.js';
/*
 * The one reader of JSON from outside. `JSON.parse` rounds integers beyond 2^53, makes infinities of numbers beyond the largest double, and
 * takes the last of two members with one name: another reader of the same text would have seen something else.
 */

/** A number that a double does not hold, and where it stands. */
export interface InexactNumber {
  /** Names of members and indexes of entries. */
  readonly path: readonly (string | number)[];
  /** As it was written. */
  readonly literal: string;
}

export interface RefusedJson {
  readonly ok: false;
  readonly fault: 'syntax' | 'depth' | 'repeated' | 'number';
  /** What is wrong, and what to write instead. */
  readonly why: string;
  /** Of the fault `number`; none where there are too many to tell apart. */
  readonly numbers: readonly InexactNumber[];
  /** With the text of each of the numbers in its place; `undefined` where there are none. */
  readonly value: unknown;
}

export type JsonReading = { readonly ok: true; readonly value: unknown } | RefusedJson;

/** Levels of objects and arrays where a caller names no other number. What reads values calls itself once per level. */
const MOST_LEVELS = 500;

const BYTE_ORDER_MARK = '\u{feff}';
const MARK = 0xfeff;

/** The text without a byte order mark, which editors and shells of Windows put before a text. */
export function withoutMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

/**
 * Reads JSON exactly or not at all. A byte order mark before it is left out.
 * @param levels of objects and arrays that may be nested; the outermost is the first
 */
export function readJson(text: string, levels = MOST_LEVELS): JsonReading {
  const json = text.charCodeAt(0) === MARK ? text.slice(1) : text;
  const members = membersIn(json, levels);
  if (members === null) return refuse('depth', `it is nested more than ${levels} levels deep`);
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return refuse('syntax', 'it is not JSON');
  }
  const found: Measured = { members: 0, hasLarge: false };
  measure(value, found);
  if (found.members !== members) return refuse('repeated', 'an object has a member twice');
  return found.hasLarge ? readLarge(json, value) : { ok: true, value };
}

const refuse = (fault: RefusedJson['fault'], why: string): RefusedJson => ({
  ok: false,
  fault,
  why,
  numbers: [],
  value: undefined,
});

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
/** `[` and `{` differ in one bit only, and so do `]` and `}`. */
const CASE_BIT = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** The members that a JSON text writes, by its colons outside of strings; null: it is nested deeper. Nothing is parsed. */
function membersIn(json: string, levels: number): number | null {
  let depth = 0;
  let members = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      for (at += 1; at < json.length; at += 1) {
        const inside = json.charCodeAt(at);
        if (inside === BACKSLASH) at += 1;
        else if (inside === QUOTE) break;
      }
    } else if (code === COLON) members += 1;
    else if ((code | CASE_BIT) === OPEN) {
      depth += 1;
      if (depth > levels) return null;
    } else if ((code | CASE_BIT) === CLOSE) depth -= 1;
  }
  return members;
}

/** What a parsed value has: fewer members than its text wrote, when a name occurred twice, in whichever spelling. */
interface Measured {
  members: number;
  /** Whether a number is so large that it may have been rounded. */
  hasLarge: boolean;
}

function measure(value: unknown, found: Measured): void {
  if (typeof value === 'number') {
    if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER) found.hasLarge = true;
  } else if (Array.isArray(value)) {
    for (const entry of value) measure(entry, found);
  } else if (typeof value === 'object' && value !== null) {
    for (const name of Object.keys(value)) {
      found.members += 1;
      measure((value as Record<string, unknown>)[name], found);
    }
  }
}

const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** Maximum number of inexact numbers that are reported one by one. */
const MOST_NUMBERS = 100;

function readLarge(json: string, value: unknown): JsonReading {
  const pieces: string[] = [];
  let from = 0;
  for (const { 0: token, index } of json.matchAll(STRING_OR_NUMBER)) {
    // No shorter number is large.
    if (token.startsWith('"') || token.length < 4 || isExactNumber(token)) continue;
    if (pieces.length === MOST_NUMBERS)
      return refuse(
        'number',
        `it has more than ${MOST_NUMBERS} numbers like ${token}, which no JSON number holds exactly; write them as texts`,
      );
    pieces.push(`${json.slice(from, index)}"${token}"`);
    from = index + token.length;
  }
  if (pieces.length === 0) return { ok: true, value };
  const withTexts: unknown = JSON.parse(pieces.join('') + json.slice(from));
  const numbers = [...listReplaced(value, withTexts, [])];
  const why = inexactNumber(numbers[0] as InexactNumber);
  return { ok: false, fault: 'number', why, numbers, value: withTexts };
}

/** The numbers of one value that are texts in the other. */
function* listReplaced(
  value: unknown,
  other: unknown,
  path: InexactNumber['path'],
): Generator<InexactNumber> {
  if (typeof value === 'number' && typeof other === 'string') yield { path, literal: other };
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== 'number' && (typeof member !== 'object' || member === null)) continue;
    const step = Array.isArray(value) ? Number(name) : name;
    yield* listReplaced(member, (other as Record<string, unknown>)[name], [...path, step]);
  }
}

const INTEGER = /^([+-]?(?:0[xo][\da-f]+|\d+))(?:\.0*)?$/i;
/** No 64-bit integer is as large: a database can hold such a number as a double alone. */
const BEYOND_INTEGERS = 2 ** 63;

/**
 * Whether a double holds a number: an integer with all its digits, and anything else as close as doubles are. An integer beyond 64 bits may
 * also be the shortest text of its double, which is what JSON writers make of one.
 */
export function isExactNumber(literal: string): boolean {
  const value = Number(literal);
  if (Number.isSafeInteger(value)) return true;
  if (!Number.isFinite(value)) return false;
  const integer = INTEGER.exec(literal)?.[1];
  // Below 10^21 this writes every digit of the double.
  if (integer === undefined || integer === value.toFixed(0)) return true;
  if (BigInt(integer.replace(/^[+-]/, '')) === BigInt(Math.abs(value))) return true;
  return Math.abs(value) >= BEYOND_INTEGERS && String(value) === literal;
}

/** What is wrong with a number that a double does not hold. */
export function inexactNumber({ path, literal }: InexactNumber): string {
  const shown = literal.length > 40 ? `${cutText(literal, 40)}…` : literal;
  const value = Number(literal);
  // How JSON writers spell a double that is meant.
  const double = String(value) === literal ? `, or ${value.toExponential()} for the double` : '';
  const instead = literal.length > 40 ? 'write it as text' : `write it as text: "${literal}"${double}`;
  const place = path.map((step, at) =>
    typeof step === 'number' ? `[${step}]` : `${at > 0 ? '.' : ''}${step}`,
  );
  const named = place.length === 0 ? 'it' : cutText(place.join(''), 200);
  return `${named} is ${shown}, which no JSON number holds exactly (whole numbers only up to ${Number.MAX_SAFE_INTEGER}); ${instead}`;
}

/** Objects that were read from a text with such a number, and what is wrong with it. */
const INEXACT = new WeakMap<object, string>();

/** Marks arguments and the like that must be refused, and not used: its numbers are texts. */
export function markInexact(object: object, why: string): void {
  if (!INEXACT.has(object)) INEXACT.set(object, why);
}

/** What is wrong with a number in arguments and the like; `undefined`: nothing. */
export function inexactIn(value: unknown): string | undefined {
  return typeof value === 'object' && value !== null ? INEXACT.get(value) : undefined;
}

/** Sets a member that belongs to the object itself, whatever its name: names are data, and `__proto__` would change the prototype. */
export function setOwn(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
  } else {
    target[name] = value;
  }
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** Reads an own member of an object: `constructor` and the like are not found. */
export function member(object: unknown, name: string): unknown {
  return isJsonObject(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}
