import type { Timestamp } from 'bson';
import type { Collation } from '../bson/collation.js';
import type { Document } from '../bson/document.js';
import { mongoError, notImplemented } from '../errors.js';
import type { EvaluationOrder } from './evaluation-order.js';
import type { GeoIndex } from './geo.js';
import type { SearchIndex } from '../search/search-index.js';

/** Indexes without which their operators are refused. */
export interface SpecialIndexes {
  /** The collection's text index, for `$text`. */
  readonly text?: TextIndex;
  /** The collection's geo indexes, which `$geoNear` chooses its field from. */
  readonly geoIndexes?: readonly GeoIndex[];
}

/** What compiled queries, projections, updates and expressions need from the operation they serve. */
export interface QueryContext extends SpecialIndexes {
  /** Called in every loop; throws MongoError 50 once the operation's time is up. */
  tick(): void;
  /** The same in loops of expressions, which cannot be interrupted: throws also when one document takes too long. */
  tickExpression?(): void;
  /** True when others should get their turn; absent where nobody waits. */
  turnIsOver?(): boolean;
  readonly collation?: Collation;
  /** User variables (`let`), by name without `$$`; read at evaluation, so a caller may rebind them. */
  readonly variables?: Record<string, unknown>;
  /** The time of the set when the operation began: `$$CLUSTER_TIME`. */
  readonly clusterTime?: Timestamp | undefined;
  /** The one moment the whole operation runs at: `$$NOW` and `$currentDate`. */
  readonly now: Date;
  /** In commands whose filters know neither `$$NOW` nor `$$CLUSTER_TIME`. */
  readonly timeless?: boolean;
  /** Other collections of the database, for joins. */
  collection?(name: string): Iterable<Document>;
  /** What the beginning of a joined pipeline needs to know of its collection. */
  joinedIndexes?(name: string): SpecialIndexes;
  /** What the filter, or a stage before, says of the documents it finds, by the name that `$meta` has for it. */
  readonly found?: Readonly<Record<string, (doc: Document) => unknown>>;
  /** The same of documents made of these, and what searches and `$geoNear` say. */
  readonly metadata?: WeakMap<Document, Document>;
  /** The collection's search indexes; absent where the server answers without search. */
  readonly search?: SearchIndexes;
  /** Set where filters are not evaluated as they are written. */
  readonly order?: EvaluationOrder;
  /** How many joins are around the pipeline. */
  readonly joins?: number;
  /** In a `$facet`, which has none within. */
  readonly inFacet?: boolean;
  /** The same for `$and` and `$or` of expressions, which have it inside `$expr` only. */
  readonly expressionOrder?: EvaluationOrder;
}

/** Fields of a text index with their weights; the field `$**` stands for every string in the document. */
export interface TextIndex {
  readonly fields: readonly { readonly path: string; readonly weight: number }[];
  /** Words are stemmed and stop words dropped for "english", the default; "none" takes them as they are. */
  readonly language?: string;
}

export interface SearchIndexes {
  /** False where there is no collection. */
  readonly exists?: boolean;
  /** Whether others of the kind are declared, and none of this name. */
  misses?(index: unknown, type: SearchIndex['type']): boolean;
  /** The index of that name; undefined where none is declared. */
  vectorIndex?(name: string): SearchIndex | undefined;
}

/** A compiled filter. */
export interface Filter {
  matches(doc: Document): boolean;
  /** The element of an array through which the document matched: what positional `$` refers to. */
  findMatchedPosition(doc: Document): number | undefined;
}

/** One node of a compiled filter. */
export interface Predicate {
  test(doc: Document): boolean;
  /** The conditions that have to hold and can tell which element of an array matched. */
  readonly locators?: readonly Locator[];
}

export interface Locator {
  /** The operator and path: the server sorts conditions by them, and the last one that knows an element decides. */
  readonly name: string;
  readonly path: string;
  /** Only called on documents that match. */
  locate(doc: Document): number | undefined;
}

/** Names of metadata that have no value unless a search or `$geoNear` was there; of the first ones, MongoDB checks it. */
const CHECKED_KEYWORDS = new Set(['textScore', 'geoNearDistance', 'geoNearPoint', 'scoreDetails']);
const UNCHECKED_KEYWORDS = new Set(['searchScore', 'vectorSearchScore', 'searchHighlights', 'randVal']);
const MISSING = new Set(['sortKey', 'indexKey', 'recordId']);

/** What `{$meta: name}` reads of a document. Errors: 40218 where no search gives it, 238 for what this server has not, else 31138. */
export function readMetadata(name: string, { found, metadata }: QueryContext): (doc: Document) => unknown {
  const read = found?.[name];
  if (MISSING.has(name)) throw notImplemented(`the expression $meta: "${name}"`);
  if (!read && CHECKED_KEYWORDS.has(name))
    throw mongoError(40218, `query requires ${name} metadata, but it is not available`);
  if (!read && !UNCHECKED_KEYWORDS.has(name))
    throw mongoError(31138, `Unsupported argument to $meta: ${name}`);
  return (doc) => metadata?.get(doc)?.[name] ?? read?.(doc);
}
