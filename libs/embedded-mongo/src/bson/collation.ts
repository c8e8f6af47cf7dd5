import { badValue, mongoError, notImplemented } from '../errors.js';
import type { Document } from './document.js';
import { numberKind, toDouble } from './number.js';

/** A language's string order, with a key that is equal exactly for strings the order calls equal. */
export interface Collation {
  /** The complete specification, as listIndexes and explain show it. */
  readonly spec: Document;
  compare(a: string, b: string): number;
  key(value: string): string;
}

/** Control and format characters, which no collation weighs; white space among them counts. */
const ignorable = /(?![\t\n\v\f\r\u0085])[\p{Cc}\p{Cf}]/gu;
const sensitivities = { 1: ['base', 'case'], 2: ['accent', 'variant'], 3: ['variant', 'variant'] } as const;

/**
 * Compiles a `collation` document; `locale: "simple"` gives undefined, which is byte order.
 * Errors: 40414 without a locale, 2 for unknown values, 238 for strengths 4 and 5 and backwards order.
 */
export function compileCollation(doc: Document): Collation | undefined {
  const locale = doc['locale'];
  if (typeof locale !== 'string') {
    throw mongoError(40414, "BSON field 'collation.locale' is missing but a required field");
  }
  if (locale === 'simple') return undefined;
  const strength = numberKind(doc['strength']) === undefined ? 3 : toDouble(doc['strength']);
  if (strength !== 1 && strength !== 2 && strength !== 3) {
    if (strength === 4 || strength === 5) throw notImplemented(`collation strength ${strength}`);
    throw badValue(`Enumeration value '${strength}' for field 'collation.strength' is not a valid value.`);
  }
  if (doc['backwards'] === true) throw notImplemented('collation with backwards: true');
  const caseLevel = doc['caseLevel'] === true;
  const numeric = doc['numericOrdering'] === true;
  const shifted = doc['alternate'] === 'shifted';
  const caseFirst = doc['caseFirst'] === 'upper' || doc['caseFirst'] === 'lower' ? doc['caseFirst'] : 'false';
  const collator = new Intl.Collator(languageTag(locale), {
    sensitivity: sensitivities[strength][caseLevel ? 1 : 0],
    numeric,
    caseFirst,
    ignorePunctuation: shifted,
  });
  // Only the fourth strength tells the two syllabaries apart.
  const japanese = /^ja\b/.test(locale);
  const foldCase = strength < 3 && !caseLevel;
  const key = (value: string): string => {
    let text = strength === 3 ? value.normalize('NFC') : value.normalize('NFKD');
    text = text.replace(ignorable, '');
    if (japanese) text = text.replace(/[ァ-ヶ]/g, (kana) => String.fromCharCode(kana.charCodeAt(0) - 0x60));
    if (strength === 1) text = text.replace(/\p{M}+/gu, '');
    if (foldCase) text = text.toUpperCase().toLowerCase();
    if (shifted) text = text.replace(/[\p{P}\p{Z}\s]+/gu, '');
    return numeric
      ? text.replace(/0+(?=[0-9])/g, (zeros, at: number) => (/[0-9]/.test(text[at - 1] ?? '') ? zeros : ''))
      : text;
  };
  const spec = {
    locale,
    caseLevel,
    caseFirst: caseFirst === 'false' ? 'off' : caseFirst,
    strength,
    numericOrdering: numeric,
    alternate: shifted ? 'shifted' : 'non-ignorable',
    maxVariable: doc['maxVariable'] ?? 'punct',
    normalization: doc['normalization'] === true,
    backwards: false,
    version: '57.1',
  };
  return { spec, key, compare: (a, b) => compareWith(collator, key, a, b) };
}

/** What the collator calls equal is decided by the key, so order and equality never disagree. */
function compareWith(collator: Intl.Collator, key: (s: string) => string, a: string, b: string): number {
  if (a === b) return 0;
  const order = collator.compare(a, b);
  if (order !== 0) return order < 0 ? -1 : 1;
  const x = key(a);
  const y = key(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

function languageTag(locale: string): string {
  const tag = locale.split('@')[0]?.replaceAll('_', '-') ?? '';
  let known: string[] = [];
  try {
    known = Intl.Collator.supportedLocalesOf([tag]);
  } catch {
    // An ill-formed tag is answered like an unknown one.
  }
  if (known.length === 0) throw badValue(`Field 'locale' is invalid in: { locale: "${locale}" }`);
  return tag;
}
