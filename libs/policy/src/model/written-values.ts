import { cutText, readJson, refuse } from '#core';
import { isPlainObject, parseIsoDate, type PlainObject, toTypedDate } from './where.js';

/*
 * Callers write values as MongoDB's Extended JSON or as answers show them; everything behind this file reads Parse's JSON alone.
 */

/** Extended JSON of MongoDB. Undefined: not of the form. */
const EXTENDED_FORMS: Readonly<
  Record<string, { readonly form: string; readonly read: (value: unknown) => unknown }>
> = {
  $oid: {
    form: 'the 24 hexadecimal digits of an id, as text',
    read: (value) =>
      typeof value === 'string' && /^[0-9a-f]{24}$/i.test(value) ? value.toLowerCase() : undefined,
  },
  $uuid: {
    form: 'a UUID as text',
    read: (value) =>
      typeof value === 'string' && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)
        ? value.toLowerCase()
        : undefined,
  },
  $date: { form: 'ISO 8601 text, or {"$numberLong": milliseconds as text}', read: readDate },
  $numberInt: { form: 'the digits of a whole number, as text', read: readWhole },
  $numberLong: { form: 'the digits of a whole number, as text', read: readWhole },
  $numberDouble: { form: 'a number as text', read: readDecimal },
  $numberDecimal: { form: 'a number as text', read: readDecimal },
  $binary: { form: '{"base64": text, "subType": "00"}', read: readBinary },
  $regularExpression: { form: '{"pattern": text, "options": text}', read: readPattern },
};

/** Numbers that JSON does not have, as answers write them. */
export const NON_FINITE: ReadonlySet<string> = new Set(['NaN', 'Infinity', '-Infinity']);

function readDate(value: unknown): unknown {
  const time = isPlainObject(value) ? value['$numberLong'] : value;
  const isTime =
    typeof time === 'number' || (value !== time && typeof time === 'string' && /^-?\d{1,16}$/.test(time));
  const date = isTime ? new Date(Number(time)) : typeof time === 'string' ? parseIsoDate(time) : null;
  return date && !Number.isNaN(date.getTime()) ? toTypedDate(date) : undefined;
}

/** A number where a double holds it, else its digits. */
function readWhole(value: unknown): unknown {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !/^-?\d{1,19}$/.test(text)) return undefined;
  return Number.isSafeInteger(Number(text)) ? Number(text) : text;
}

function readDecimal(value: unknown): unknown {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string') return undefined;
  if (NON_FINITE.has(text)) return text;
  if (!/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)) return undefined;
  const shortest = text.includes('.') && !/e/i.test(text) ? text.replace(/\.?0+$/, '') : text;
  return String(Number(shortest)) === shortest ? Number(shortest) : text;
}

function readBinary(value: unknown): unknown {
  if (!isPlainObject(value) || typeof value['base64'] !== 'string') return undefined;
  const { base64, subType } = value;
  if (subType !== '04' && subType !== 4) return { __type: 'Bytes', base64 };
  const hex = Buffer.from(base64, 'base64').toString('hex');
  return hex.length === 32 ? hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') : undefined;
}

function readPattern(value: unknown): unknown {
  if (!isPlainObject(value) || typeof value['pattern'] !== 'string') return undefined;
  const { pattern, options = '' } = value;
  return typeof options === 'string'
    ? { $regex: pattern, ...(options !== '' && { $options: options }) }
    : undefined;
}

/** Text between `\\Q` and `\\E` stands for itself: Parse SDKs write so what a value begins with. */
const escapeQuoted = (pattern: string): string =>
  pattern.replaceAll(/\\Q(.*?)(?:\\E|$)/gs, (_, quoted: string) =>
    quoted.replaceAll(/[\\^$.|?*+()[\]{}#\s-]/g, String.raw`\$&`),
  );

/** Typed values as answers show them, by their `_type`: what each member is called in Parse's JSON. */
const SHOWN_FORMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Pointer: { class: 'className', id: 'objectId' },
  File: { name: 'name', url: 'url' },
  GeoPoint: { latitude: 'latitude', longitude: 'longitude' },
  Polygon: { coordinates: 'coordinates' },
  Bytes: { base64: 'base64' },
  Relation: { class: 'className' },
};

function readShown(value: PlainObject): PlainObject | undefined {
  const { _type: type, ...members } = value;
  const names = typeof type === 'string' && Object.hasOwn(SHOWN_FORMS, type) ? SHOWN_FORMS[type] : undefined;
  if (!names || !Object.keys(members).every((name) => Object.hasOwn(names, name))) return undefined;
  const renamed = Object.entries(members).map(([name, member]) => [names[name] as string, member] as const);
  return { __type: type, ...Object.fromEntries(renamed) };
}

/** Deeper values are refused by whoever reads them. */
const MAX_DEPTH = 32;

/**
 * Extended JSON (`{"$oid": …}`, `{"$date": …}`) as Parse's JSON, at any depth. What holds none of it is returned as it is. What an
 * operator of a pipeline calculates with keeps the type that was written.
 * @throws Refused `invalid_query` for a malformed one
 */
export const readExtendedJson = (written: unknown): unknown =>
  convert(written, { shown: false, pattern: '$regex', place: 'other' }, 0);

/** The same of a filter or a row, and values as answers show them (`{"_type": "Pointer", …}`). @throws Refused `invalid_query` */
export const readWrittenValues = (written: unknown): unknown =>
  convert(written, { shown: true, pattern: '$regex', place: 'filter' }, 0);

interface WrittenForm {
  /** Whether values may be written as answers show them. */
  readonly shown: boolean;
  /** The member that is a pattern. */
  readonly pattern: '$regex' | 'regex';
  readonly place: Place;
}

/** Where a value stands: in a filter, whose operators calculate nothing, in an operand of `CALCULATING`, or elsewhere. */
type Place = 'filter' | 'calculation' | 'other';

/** Stages and expressions whose numbers become results: a double beside a decimal would leave digits that nobody wrote. */
const CALCULATING: ReadonlySet<string> = new Set(
  (
    '$abs $add $addFields $avg $ceil $cond $divide $exp $floor $ifNull $let $ln $log $log10 $max $min $mod $multiply $pow $project ' +
    '$round $set $sqrt $subtract $sum $switch $trunc'
  ).split(' '),
);

/** Expressions whose member `regex` is a pattern. */
export const PATTERN_EXPRESSIONS: ReadonlySet<string> = new Set([
  '$regexMatch',
  '$regexFind',
  '$regexFindAll',
]);

function placeBelow(name: string, place: Place): Place {
  if (name === '$match') return 'filter';
  if (name === '$expr') return 'other';
  if (place === 'filter' || !name.startsWith('$')) return place;
  return CALCULATING.has(name) ? 'calculation' : 'other';
}

function convert(value: unknown, form: WrittenForm, depth: number): unknown {
  if (depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) {
    const entries = value.map((entry) => convert(entry, form, depth + 1));
    return entries.some((entry, index) => entry !== value[index]) ? entries : value;
  }
  if (!isPlainObject(value)) return value;
  const names = Object.keys(value);
  const [only = ''] = names;
  if (names.length === 1 && only.startsWith('$') && Object.hasOwn(EXTENDED_FORMS, only))
    return form.place === 'calculation' ? readCalculated(only, value[only]) : readExtended(only, value[only]);
  if (form.shown && depth > 0 && '_type' in value) {
    const typed = readShown(value);
    if (typed) return typed;
  }
  let changed: [string, unknown][] | undefined;
  for (const [index, name] of names.entries()) {
    const written = value[name];
    let member = written;
    if (name === form.pattern && typeof written === 'string') member = escapeQuoted(written);
    else if (typeof written === 'object') {
      const pattern = PATTERN_EXPRESSIONS.has(name) ? 'regex' : '$regex';
      member = convert(written, { ...form, pattern, place: placeBelow(name, form.place) }, depth + 1);
    }
    if (member === written && !changed) continue;
    changed ??= names.slice(0, index).map((before) => [before, value[before]]);
    changed.push([name, member]);
  }
  // `fromEntries` defines members, also one called `__proto__`.
  return changed ? Object.fromEntries(changed) : value;
}

function readExtended(name: string, written: unknown): unknown {
  const { form, read } = EXTENDED_FORMS[name] as (typeof EXTENDED_FORMS)[string];
  const value = read(written);
  if (value !== undefined) return value;
  throw refuse.invalidQuery(`'${name}' takes ${form}`);
}

/** A number that a double does not hold as it was written, by the operator that makes it. */
function readCalculated(name: string, written: unknown): unknown {
  const value = readExtended(name, written);
  if (name === '$numberDecimal') return { $toDecimal: String(written) };
  if (typeof value !== 'string') return value;
  if (name === '$numberLong') return { $toLong: value };
  return name === '$numberDouble' ? { $toDouble: value } : value;
}

/** A text that is JSON of an object or a list, which some clients send in its place; any other value as it is. */
export function readObjectText(written: unknown): unknown {
  if (typeof written !== 'string' || !/^\s*[{[]/.test(written)) return written;
  const reading = readJson(written);
  return reading.ok ? reading.value : written;
}

export const TORN_TEXT =
  'has half of a surrogate pair, which is no character and would be taken for another: write whole characters';

const TORN = /\p{Surrogate}/u;

/** Where a value has a text, or a name of a member, with a lone surrogate; null: nowhere. Of any depth. */
export function findTornText(value: unknown, place: string): string | null {
  const open: [unknown, string][] = [[value, place]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [found, at] = next;
    if (typeof found === 'string' && TORN.test(found)) return at;
    if (found === null || typeof found !== 'object') continue;
    for (const [name, member] of Object.entries(found)) {
      if (TORN.test(name)) return `a name in ${at}`;
      open.push([member, cutText(`${at}.${name}`, MOST_OF_PLACE)]);
    }
  }
  return null;
}

const MOST_OF_PLACE = 200;

/** The driver sends half of a surrogate pair as another character. @throws Refused */
export function refuseTornText(value: unknown, place: string): void {
  const torn = findTornText(value, place);
  if (torn !== null) throw refuse.invalidArgument(`${torn} ${TORN_TEXT}`);
}
