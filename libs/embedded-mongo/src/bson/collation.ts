import { EJSON } from 'bson';
import { badValue, mongoError, notImplemented, typeMismatch, requireOneOf } from '../errors.js';
import type { Document } from './document.js';
import { coerceInteger, numberKind } from './number.js';
import { remember } from './remember.js';

/** A language's string order, with a key that is equal exactly for strings the order calls equal. */
export interface Collation {
  /** The complete specification, as listIndexes and explain show it. */
  readonly spec: Document;
  compare(a: string, b: string): number;
  key(value: string): string;
}

const sensitivities = { 1: ['base', 'case'], 2: ['accent', 'variant'] } as const;
const longNames: Readonly<Record<string, string>> = {
  phonebook: 'phonebk',
  traditional: 'trad',
  dictionary: 'dict',
};

/**
 * Compiles a `collation` document; `locale: "simple"` gives undefined, which is byte order.
 * Errors: 40414 without a locale, 2 for unknown values, 238 for what the runtime's collators do not have.
 */
export function compileCollation(doc: Document): Collation | undefined {
  const locale = doc['locale'];
  if (locale === undefined || locale === null)
    throw mongoError(40414, "BSON field 'collation.locale' is missing but a required field");
  checkTypes(doc);
  if (locale === 'simple') return undefined;
  return compileOnce(EJSON.stringify(doc));
}

/** Every client may ask for others. */
const mostCompiled = 50;

const compileOnce = remember(mostCompiled, (key) => createCollation(EJSON.parse(key) as Document));

/** What an option may be: one of some texts, any text, a number or a flag. */
const types: Readonly<Record<string, readonly string[] | 'string' | 'number' | 'boolean'>> = {
  locale: 'string',
  strength: 'number',
  caseLevel: 'boolean',
  caseFirst: ['off', 'upper', 'lower'],
  numericOrdering: 'boolean',
  alternate: ['non-ignorable', 'shifted'],
  maxVariable: ['punct', 'space'],
  normalization: 'boolean',
  backwards: 'boolean',
  version: 'string',
};

/** Errors: 14, 2, 40415, 161 for another version of the rules. */
function checkTypes(doc: Document): void {
  for (const [name, value] of Object.entries(doc)) {
    const type = Object.hasOwn(types, name) ? types[name] : undefined;
    if (type === undefined) throw mongoError(40415, `BSON field 'collation.${name}' is an unknown field.`);
    if (value === null && name !== 'backwards') continue;
    const found = numberKind(value) === undefined ? typeof value : 'number';
    if (found !== (Array.isArray(type) ? 'string' : type))
      throw typeMismatch(`BSON field 'collation.${name}' is the wrong type '${found}'`);
    if (Array.isArray(type)) requireOneOf(value, type, `collation.${name}`);
  }
  if (![undefined, null, '57.1'].includes(doc['version'] as string))
    throw mongoError(161, `Requested collation version ${String(doc['version'])} is not available`);
}

function createCollation(doc: Document): Collation {
  const locale = doc['locale'] as string;
  const strength = coerceInteger(doc['strength'] ?? 3);
  requireOneOf(strength, [1, 2, 3, 4, 5], 'collation.strength');
  const caseLevel = doc['caseLevel'] === true;
  const caseFirst = doc['caseFirst'] ?? undefined;
  if (caseFirst !== undefined && caseFirst !== 'off' && !caseLevel && strength < 3)
    throw badValue("'caseFirst' needs 'caseLevel' or a strength greater than 2");
  const backwards = doc['backwards'] === undefined ? locale === 'fr_CA' : doc['backwards'] === true;
  if (backwards && !/^fr(?![a-z])/.test(locale)) throw notImplemented('backwards: true outside of French');
  // The French of Canada is the one that compares accents from the end.
  const tag = backwards ? 'fr-CA' : locale === 'fr_CA' ? 'fr' : languageTag(locale);
  const spacesOnly = doc['maxVariable'] === 'space';
  const { alternate } = doc;
  const options: Intl.CollatorOptions = {
    sensitivity: strength === 1 || strength === 2 ? sensitivities[strength][caseLevel ? 1 : 0] : 'variant',
    numeric: doc['numericOrdering'] === true,
    caseFirst: (caseFirst === 'off' ? 'false' : caseFirst) as 'upper' | 'lower' | 'false' | undefined,
    ignorePunctuation:
      (alternate ?? undefined) === undefined ? undefined : alternate === 'shifted' && !spacesOnly,
  };
  const collator = new Intl.Collator(tag, options);
  const resolved = collator.resolvedOptions();
  const shifted = resolved.ignorePunctuation || alternate === 'shifted';
  const read =
    shifted && spacesOnly ? (text: string) => text.replace(/(?:(?!\u00a0)[\p{Z}\s])+/gu, '') : undefined;
  const spec = {
    locale,
    caseLevel,
    caseFirst: resolved.caseFirst === 'false' ? 'off' : resolved.caseFirst,
    strength,
    numericOrdering: resolved.numeric,
    alternate: shifted ? 'shifted' : 'non-ignorable',
    maxVariable: doc['maxVariable'] ?? 'punct',
    normalization: doc['normalization'] === true,
    backwards,
    version: '57.1',
  };
  if (strength <= 3) {
    const key = keyMaker(collator, resolved.numeric, read);
    const order = read ? (a: string, b: string) => collator.compare(read(a), read(b)) : collator.compare;
    return { spec, key, compare: (a, b) => compareWith(order, key, a, b) };
  }
  // These levels tell apart what the third one calls equal: punctuation, then characters without any weight.
  const exact = new Intl.Collator(tag, { ...options, ignorePunctuation: false });
  const kept = strength === 5 ? /^$/ : /\p{Cf}|(?![\t\n\v\f\r\u0085])\p{Cc}/gu;
  const key = (value: string): string => {
    const text = value.normalize('NFD').replace(kept, '');
    return resolved.numeric && strength === 4 ? dropZeros(text) : text;
  };
  const order = (a: string, b: string): number =>
    (read ? collator.compare(read(a), read(b)) : collator.compare(a, b)) || exact.compare(a, b);
  return { spec, key, compare: (a, b) => compareWith(order, key, a, b) };
}

/** Characters that others may be equal to which are no forms of them, as ø to o; the first that is equal stands for all. */
const toHiragana = (katakana: string): string => String.fromCharCode(katakana.charCodeAt(0) - 0x60);
const kana = Array.from({ length: 86 }, (_, i) => String.fromCharCode(0x3041 + i));
const common = ['', ...Array.from('abcdefghijklmnopqrstuvwxyz0123456789'), 'ae', 'oe', 'ss', ...kana];

const mostForms = 100_000;

/** Keys from characters, each with its marks, that stand for all that the collator calls equal to them. */
function keyMaker(
  collator: Intl.Collator,
  numeric: boolean,
  read: ((text: string) => string) | undefined,
): (value: string) => string {
  const findForm = remember(mostForms, (cluster) => {
    const bare = cluster.normalize('NFKD').replace(/\p{M}+/gu, '');
    const texts = [bare, cluster.normalize('NFKC')];
    const own = texts.flatMap((text) => {
      const upper = text.replace(/[ァ-ヶ]/g, toHiragana).toUpperCase();
      return [upper.toLowerCase(), upper, text.toUpperCase()];
    });
    return [...common, ...own, ...texts].find((other) => collator.compare(cluster, other) === 0) ?? cluster;
  });
  return (value) => {
    const text = (read ? read(value) : value).normalize('NFC').replace(/\P{M}\p{M}*|\p{M}+/gu, findForm);
    return numeric ? dropZeros(text) : text;
  };
}

/** Without zeros in front of a number. */
const dropZeros = (text: string): string => text.replace(/(?<![0-9])0+(?=[0-9])/g, '');

/** What the collator calls equal is decided by the key, so order and equality never disagree. */
function compareWith(
  order: (a: string, b: string) => number,
  key: (text: string) => string,
  a: string,
  b: string,
): number {
  if (a === b) return 0;
  const found = order(a, b);
  if (found !== 0) return Math.sign(found);
  const [x, y] = [key(a), key(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}

/** The name of a locale as the runtime has it. Errors: 2 for an unknown one, 238 for an order that it does not have. */
function languageTag(locale: string): string {
  const [name = '', keywords = ''] = locale.split('@');
  const order = /^collation=(\w+)$/.exec(keywords)?.[1];
  const base = name.replaceAll('_', '-');
  const asked = order && (longNames[order] ?? order);
  const tag = asked === undefined ? base : `${base}-u-co-${asked}`;
  let known: string[] = [];
  try {
    known = Intl.Collator.supportedLocalesOf([tag]);
  } catch {
    // An ill-formed tag is answered like an unknown one.
  }
  if (known.length === 0 || (keywords !== '' && order === undefined))
    throw badValue(`Field 'locale' is invalid in: { locale: "${locale}" }`);
  // Runtimes name the order that they take instead in different ways.
  if (asked !== undefined && new Intl.Collator(tag).resolvedOptions().collation !== asked)
    throw notImplemented(`the collation ${locale}`);
  return tag;
}
