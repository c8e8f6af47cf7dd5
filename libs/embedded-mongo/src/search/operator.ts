import { type Document, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { searchFault, searchLack } from '../errors.js';
import type { Corpus } from './corpus.js';

export interface FoundDocument {
  readonly doc: Document;
  readonly score: number;
}

/** The score of a document; null when it does not match. */
type Matcher = (doc: Document) => number | null;

/** Whether a word of the path is one of those that were looked for: what highlights mark. */
export type HitTest = (path: string, term: string) => boolean;

/** One operator of a search, compiled before a document is read. */
export interface SearchOperator {
  over(corpus: Corpus): Matcher;
  readonly hits: HitTest;
}

export type SearchOperatorCompiler = (spec: Document) => SearchOperator;

/** Errors: 8 for a member the operator does not have. */
export function onlyMembers(spec: Document, operator: string, known: readonly string[]): void {
  for (const name of Object.keys(spec)) {
    if (name === 'score' || known.includes(name)) continue;
    throw searchFault(`unrecognized field "${operator}.${name}"`);
  }
}

/** The words looked for: one text or several. Errors: 8. */
export function queryTexts(spec: Document, operator: string): string[] {
  const query = getField(spec, 'query');
  const texts: readonly unknown[] = Array.isArray(query) ? query : [query];
  if (
    texts.length === 0 ||
    texts.length > 1024 ||
    !texts.every((text): text is string => typeof text === 'string' && text !== '')
  )
    throw searchFault(`"${operator}.query" must be a text, or 1 to 1024 of them`);
  return [...texts];
}

export interface Fuzziness {
  readonly maxEdits: number;
  readonly prefixLength: number;
}

/** Errors: 8 unless one or two edits are asked for. */
export function fuzziness(spec: Document, operator: string): Fuzziness | null {
  const fuzzy = getField(spec, 'fuzzy') ?? null;
  if (fuzzy === null) return null;
  if (!isDocument(fuzzy)) throw searchFault(`"${operator}.fuzzy" must be a document`);
  const at = `${operator}.fuzzy`;
  onlyMembers(fuzzy, at, ['maxEdits', 'prefixLength', 'maxExpansions']);
  wholeMember(fuzzy, 'maxExpansions', at, 50, [1, 1000]);
  return {
    maxEdits: wholeMember(fuzzy, 'maxEdits', at, 2, [1, 2]),
    prefixLength: wholeMember(fuzzy, 'prefixLength', at, 0),
  };
}

/** A whole number of a document at a place of the search. Errors: 8 for anything else, and beyond the limits. */
export function wholeMember(
  spec: Document,
  name: string,
  at: string,
  fallback: number,
  [least, most]: readonly [number, number] = [0, Infinity],
): number {
  const value = getField(spec, name) ?? fallback;
  const whole = [undefined, 'decimal'].includes(numberKind(value)) ? NaN : toDouble(value);
  if (Number.isInteger(whole) && whole >= least && whole <= most) return whole;
  throw searchFault(`"${at}.${name}" must be a whole number from ${least} to ${most}`);
}

/** Errors: 8 for a node that is not named by its key. */
export function checkPreference(spec: Document): void {
  const wanted = getField(spec, 'searchNodePreference') ?? undefined;
  if (wanted !== undefined && !(isDocument(wanted) && typeof getField(wanted, 'key') === 'string'))
    throw searchFault('"searchNodePreference" must be a document with a key');
}

/** `score: {boost: {value}}` and `{constant: {value}}`. Errors: 238 for scores that are computed, 8 for malformed ones. */
export function applyScore(spec: Document, operator: SearchOperator): SearchOperator {
  const score = getField(spec, 'score');
  if (score === undefined) return operator;
  if (!isDocument(score) || Object.keys(score).length !== 1)
    throw searchFault('"score" must be a document with one field');
  const [kind = ''] = Object.keys(score);
  const options = getField(score, kind);
  const value = isDocument(options) ? getField(options, 'value') : undefined;
  if (!['boost', 'constant'].includes(kind) || value === undefined)
    throw searchLack(`the score modifier ${kind}`);
  if (numberKind(value) === undefined || !(toDouble(value) > 0))
    throw searchFault(`"score.${kind}.value" must be greater than 0`);
  const given = toDouble(value);
  return {
    hits: operator.hits,
    over: (corpus) => {
      const match = operator.over(corpus);
      return (doc) => {
        const own = match(doc);
        if (own === null) return null;
        return kind === 'boost' ? own * given : given;
      };
    },
  };
}
