import { type Document, getField, isDocument } from '../bson/document.js';
import { leafValues, parsePath } from '../bson/path.js';
import { badValue, mongoError, notImplemented, typeMismatch } from '../errors.js';
import type { QueryContext, TextIndex } from './context.js';

/** Scores a document against a search; 0 means no match. */
type TextScore = (doc: Document) => number;

const stopWords = new Set(
  (
    'a about after all also an and any are as at be because been but by can could did do does for from had has have he her his how i if in into ' +
    'is it its just me more most my no not now of on only or other our out over she so some such than that the their them then there these they ' +
    'this to too under up us was we were what when which while who why will with would you your'
  ).split(' '),
);

const argumentTypes: Readonly<Record<string, string>> = {
  $search: 'string',
  $language: 'string',
  $caseSensitive: 'boolean',
  $diacriticSensitive: 'boolean',
};
const languages = new Set(
  (
    'none danish da dutch nl english en finnish fi french fr german de hungarian hu italian it norwegian nb ' +
    'portuguese pt romanian ro russian ru spanish es swedish sv turkish tr'
  ).split(' '),
);

/** Whether MongoDB has rules for the words of a language. */
export const isTextLanguage = (language: string): boolean => languages.has(language.toLowerCase());

/**
 * Compiles `$text`: any of the words, all of the "phrases", none of the -words. A plain word match with light
 * English stemming, not MongoDB's ranking. Errors: 27 without a text index, 2 or 9 for a malformed argument,
 * 238 for a language whose words are not stemmed here.
 */
export function compileText(argument: unknown, ctx: QueryContext): TextScore {
  if (!isDocument(argument)) throw badValue('$text expects an object');
  const search = getField(argument, '$search');
  for (const [field, value] of Object.entries(argument)) {
    const type = Object.hasOwn(argumentTypes, field) ? argumentTypes[field] : undefined;
    if (type === undefined) throw badValue(`extra fields in $text: ${field}`);
    if (typeof value !== type) throw typeMismatch(`${field} of $text must be a ${type}`);
  }
  if (search === undefined) throw mongoError(4, 'Missing required field $search in $text');
  if (typeof search !== 'string') throw typeMismatch('$search of $text must be a string');
  const index = ctx.text;
  if (!index) throw mongoError(27, 'text index required for $text query');
  const caseSensitive = getField(argument, '$caseSensitive') === true;
  const diacriticSensitive = getField(argument, '$diacriticSensitive') === true;
  const asked = getField(argument, '$language');
  const language = (typeof asked === 'string' && asked) || index.language || 'english';
  if (!isTextLanguage(language))
    throw badValue(`unsupported language: "${language}" for text index version 3`);
  if (!/^(?:none|english|en)$/i.test(language)) throw notImplemented(`a text search in ${language}`);
  const fold = (text: string): string => {
    const marked = diacriticSensitive ? text.normalize('NFC') : text.normalize('NFD').replace(/\p{M}/gu, '');
    return caseSensitive ? marked : marked.toLowerCase();
  };
  const stemWords = (text: string): string[] => words(fold(text), language !== 'none');
  const query = readSearch(search);
  const wanted = new Set(query.words.flatMap(stemWords));
  const banned = new Set(query.banned.flatMap(stemWords));
  const phrases = query.phrases.map(fold);
  return (doc) => {
    let score = 0;
    const texts: string[] = [];
    for (const { text, weight } of readIndexedTexts(doc, index)) {
      texts.push(fold(text));
      const found = stemWords(text);
      if (found.some((word) => banned.has(word))) return 0;
      for (const word of wanted) {
        const count = found.filter((other) => other === word).length;
        if (count > 0) score += weight * count * (0.5 + count / (2 * found.length));
      }
    }
    return phrases.every((phrase) => texts.some((text) => text.includes(phrase))) ? score : 0;
  };
}

/** The context in which `{$meta: "textScore"}` has a value, if the filter searches. */
export function withTextScore<T extends QueryContext>(ctx: T, filter: unknown): T {
  const [search, second] = listSearches(filter);
  if (second !== undefined) throw badValue('Too many text expressions');
  return search === undefined ? ctx : { ...ctx, found: { textScore: compileText(search, ctx) } };
}

/** The text searches that have to be met. */
export function listSearches(filter: unknown): unknown[] {
  if (!isDocument(filter)) return [];
  const all = getField(filter, '$and');
  const own = getField(filter, '$text');
  return [...(own === undefined ? [] : [own]), ...(Array.isArray(all) ? all.flatMap(listSearches) : [])];
}

function readSearch(search: string): { words: string[]; phrases: string[]; banned: string[] } {
  const phrases = [...search.matchAll(/"([^"]+)"/g)].map((match) => match[1] as string);
  const rest = search
    .replace(/"[^"]*"?/g, ' ')
    .split(/\s+/)
    .filter(Boolean);
  const banned = rest.filter((word) => word.length > 1 && word.startsWith('-')).map((word) => word.slice(1));
  return { words: [...rest.filter((word) => !word.startsWith('-')), ...phrases], phrases, banned };
}

function words(text: string, english: boolean): string[] {
  const found = text.match(/[\p{L}\p{N}_]+/gu) ?? [];
  return english ? found.filter((word) => !stopWords.has(word.toLowerCase())).map(stem) : [...found];
}

/** Plural and verb endings only: enough for "runs", "running" and "run" to meet. */
function stem(word: string): string {
  if (word.length <= 3) return word;
  const base = word.replace(/ies$/, 'y').replace(/(?:ing|ed|es|s)$/, '');
  if (base.length < 3) return word;
  return base.replace(/([bdgmnprt])\1$/, '$1').replace(/(?<=..)e+$/, '');
}

function* readIndexedTexts(doc: Document, index: TextIndex): Iterable<{ text: string; weight: number }> {
  for (const { path, weight } of index.fields) {
    const values = path === '$**' ? everyString(doc) : leafValues(doc, parsePath(path));
    for (const text of values) if (typeof text === 'string') yield { text, weight };
  }
}

function* everyString(value: unknown): Iterable<unknown> {
  if (typeof value === 'string') yield value;
  else if (Array.isArray(value)) for (const item of value) yield* everyString(item);
  else if (isDocument(value)) for (const item of Object.values(value)) yield* everyString(item);
}
