import type { Document } from '../bson/document.js';
import type { SearchPath } from './search-path.js';
import { listTerms } from './words.js';

/** The usual constants of BM25: how soon repetition stops to count, and how much long texts are held back. */
const K1 = 1.2;
const B = 0.75;

interface PathStatistics {
  readonly terms: ReadonlyMap<Document, readonly string[]>;
  /** In how many documents a term stands. */
  readonly documents: ReadonlyMap<string, number>;
  readonly averageLength: number;
}

/** The documents of one search, and what is known of their words. */
export class Corpus {
  private readonly statistics = new Map<string, PathStatistics>();

  constructor(
    readonly documents: readonly Document[],
    private readonly tick: () => void,
  ) {}

  terms(doc: Document, path: SearchPath): readonly string[] {
    return this.of(path).terms.get(doc) ?? [];
  }

  /** BM25 of one term that stands `count` times in the document. */
  score(doc: Document, path: SearchPath, term: string, count: number): number {
    const { documents, averageLength } = this.of(path);
    const holding = documents.get(term) ?? 0;
    const rarity = Math.log(1 + (this.documents.length - holding + 0.5) / (holding + 0.5));
    const length = this.terms(doc, path).length;
    const held = count + K1 * (1 - B + (B * length) / (averageLength || 1));
    return (rarity * count) / held;
  }

  private of(path: SearchPath): PathStatistics {
    const known = this.statistics.get(path.name);
    if (known) return known;
    const terms = new Map<Document, string[]>();
    const documents = new Map<string, number>();
    let length = 0;
    for (const doc of this.documents) {
      this.tick();
      const own = path.values(doc).flatMap((value) => (typeof value === 'string' ? listTerms(value) : []));
      if (own.length === 0) continue;
      terms.set(doc, own);
      length += own.length;
      for (const term of new Set(own)) documents.set(term, (documents.get(term) ?? 0) + 1);
    }
    const statistics = { terms, documents, averageLength: terms.size === 0 ? 0 : length / terms.size };
    this.statistics.set(path.name, statistics);
    return statistics;
  }
}
