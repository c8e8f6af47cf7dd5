import { getField, isDocument, type Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { searchFault } from './faults.js';
import type { HitTest } from './operator.js';
import { searchPaths } from './search-path.js';
import { splitWords } from './words.js';

/** The passages of one document that hold what was looked for. */
export type Highlighter = (doc: Document) => Document[];

/** Errors: 8 for a malformed `highlight`. */
export function compileHighlight(spec: unknown, isHit: HitTest): Highlighter {
  if (!isDocument(spec)) throw searchFault('"highlight" must be a document');
  const paths = searchPaths(getField(spec, 'path'), 'highlight');
  const count = (name: string, fallback: number): number => {
    const value = getField(spec, name) ?? fallback;
    if (numberKind(value) === undefined || !Number.isInteger(toDouble(value)) || toDouble(value) < 1)
      throw searchFault(`"highlight.${name}" must be a positive whole number`);
    return toDouble(value);
  };
  const examined = count('maxCharsToExamine', 500_000);
  const passages = count('maxNumPassages', 5);
  for (const name of Object.keys(spec)) {
    if (!['path', 'maxCharsToExamine', 'maxNumPassages'].includes(name))
      throw searchFault(`unrecognized field "highlight.${name}"`);
  }
  return (doc) =>
    paths.flatMap((path) => {
      const found = path
        .values(doc)
        .filter((value): value is string => typeof value === 'string')
        .flatMap((value) => sentences(value.slice(0, examined)))
        .map((sentence) => passage(sentence, (term) => isHit(path.name, term)))
        .filter(({ hits }) => hits > 0)
        .sort((a, b) => b.hits - a.hits);
      return found
        .slice(0, passages)
        .map(({ texts, hits }) => ({ score: hits, path: path.name.replace(/^\*:/, ''), texts }));
    });
}

function sentences(text: string): string[] {
  return text.match(/[^.!?\n]+[.!?\n]*\s*|[.!?\n]+/gu) ?? [];
}

function passage(sentence: string, isHit: (term: string) => boolean): { texts: Document[]; hits: number } {
  const texts: Document[] = [];
  let at = 0;
  let hits = 0;
  const plain = (end: number): void => {
    if (end > at) texts.push({ value: sentence.slice(at, end), type: 'text' });
  };
  for (const { term, start, end } of splitWords(sentence)) {
    if (!isHit(term)) continue;
    plain(start);
    texts.push({ value: sentence.slice(start, end), type: 'hit' });
    at = end;
    hits += 1;
  }
  plain(sentence.length);
  return { texts, hits };
}
