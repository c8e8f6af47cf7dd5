import { Long } from 'bson';
import { getField, isDocument, setField, type Document } from '../bson/document.js';
import { compareValues } from '../bson/compare.js';
import { numberKind } from '../bson/number.js';
import { searchFault } from './faults.js';
import { wholeMember } from './operator.js';
import { searchPaths } from './search-path.js';

/** Counts one facet over the documents that were found. */
type FacetCounter = (documents: readonly Document[]) => Document[];

/** Errors: 8 for a malformed facet. */
export function compileFacets(spec: unknown): (documents: readonly Document[]) => Document {
  if (!isDocument(spec) || Object.keys(spec).length === 0)
    throw searchFault('"facet.facets" must hold at least one facet');
  const counters = Object.keys(spec).map((name): [string, FacetCounter] => {
    const facet = getField(spec, name);
    if (!isDocument(facet)) throw searchFault(`"facet.facets.${name}" must be a document`);
    return [name, compileFacet(facet, `facet.facets.${name}`)];
  });
  return (documents) => {
    const result: Document = {};
    for (const [name, counter] of counters) setField(result, name, { buckets: counter(documents) });
    return result;
  };
}

function compileFacet(facet: Document, at: string): FacetCounter {
  const type = getField(facet, 'type');
  const path = getField(facet, 'path');
  if (typeof path !== 'string') throw searchFault(`"${at}.path" must be a string`);
  const [field] = searchPaths(path, at);
  const values = (doc: Document): unknown[] => field?.values(doc) ?? [];
  if (type === 'string') return stringFacet(values, wholeMember(facet, 'numBuckets', at, 10, [1, 1000]));
  const fits = type === 'number' ? isNumber : type === 'date' ? isDate : undefined;
  if (fits) return rangeFacet(values, readBoundaries(facet, at, fits), facet, fits);
  throw searchFault(`"${at}.type" must be one of [string, number, date]`);
}

const isNumber = (value: unknown): boolean => numberKind(value) !== undefined;
const isDate = (value: unknown): boolean => value instanceof Date;

function readBoundaries(facet: Document, at: string, fits: (value: unknown) => boolean): readonly unknown[] {
  const given = getField(facet, 'boundaries');
  if (!Array.isArray(given) || given.length < 2 || !given.every(fits))
    throw searchFault(`"${at}.boundaries" must hold at least two values of the facet's type`);
  const boundaries: readonly unknown[] = given;
  const ascending = boundaries.every((value, i) => i === 0 || compareValues(boundaries[i - 1], value) < 0);
  if (!ascending) throw searchFault(`"${at}.boundaries" must be in ascending order`);
  return boundaries;
}

/** Most frequent first; a value counts once per document. */
function stringFacet(values: (doc: Document) => unknown[], most: number): FacetCounter {
  return (documents) => {
    const counts = new Map<string, number>();
    for (const doc of documents) {
      const own = new Set(values(doc).filter((value): value is string => typeof value === 'string'));
      for (const value of own) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    return [...counts]
      .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
      .slice(0, most)
      .map(([value, count]) => bucket(value, count));
  };
}

/** Every range has its bucket, empty ones too; `default` names one for what lies outside. */
function rangeFacet(
  values: (doc: Document) => unknown[],
  boundaries: readonly unknown[],
  facet: Document,
  fits: (value: unknown) => boolean,
): FacetCounter {
  const other = getField(facet, 'default');
  const findRange = (value: unknown): number => {
    const above = boundaries.findIndex((boundary) => compareValues(value, boundary) < 0);
    return above <= 0 ? -1 : above - 1;
  };
  return (documents) => {
    const counts = boundaries.slice(1).map(() => 0);
    let outside = 0;
    for (const doc of documents) {
      const ranges = new Set(values(doc).filter(fits).map(findRange));
      for (const range of ranges) {
        if (range < 0) outside += 1;
        else counts[range] = (counts[range] ?? 0) + 1;
      }
    }
    const buckets = counts.map((count, i) => bucket(boundaries[i], count));
    return other === undefined ? buckets : [...buckets, bucket(other, outside)];
  };
}

const bucket = (id: unknown, count: number): Document => ({ _id: id, count: Long.fromNumber(count) });
