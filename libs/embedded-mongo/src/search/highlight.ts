import { getField, isDocument, type Document } from '../bson/document.js';
import { searchFault } from './faults.js';
import { onlyMembers, wholeMember, type HitTest } from './operator.js';
import { searchPaths } from './search-path.js';
import { splitWords } from './words.js';

/** The passages of one document that hold what was looked for. */
export type Highlighter = (doc: Document) => Document[];

/** Errors: 8 for a malformed `highlight`. */
export function compileHighlight(spec: unknown, isHit: HitTest): Highlighter {
  if (!isDocument(spec)) throw searchFault('"highlight" must be a document');
  const paths = searchPaths(getField(spec, 'path'), 'highlight');
  const examined = wholeMember(spec, 'maxCharsToExamine', 'highlight', 500_000, [1, Infinity]);
  const passages = wholeMember(spec, 'maxNumPassages', 'highlight', 5, [1, Infinity]);
  onlyMembers(spec, 'highlight', ['path', 'maxCharsToExamine', 'maxNumPassages']);
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
