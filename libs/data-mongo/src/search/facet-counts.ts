import type { Document } from 'mongodb';
import type { Facet, FacetBucket, FacetCounts } from '#data';
import { valueFromStorage } from '../storage/from-storage.js';
import { isPlainObject } from '../storage/own-property.js';
import type { StorageNames } from '../storage/storage-names.js';

type Facets = ReadonlyMap<string, Facet>;

const DEFAULT_BUCKETS = 10;
/** Facets have names of the caller's; the database gets names of ours. */
const alias = (index: number) => `f${index}`;
const OUTSIDE = 'outside';

const boundariesOf = ({ type, boundaries = [] }: Facet): (number | Date)[] =>
  boundaries.map((value) => (type === 'date' ? new Date(value) : Number(value)));

/** Facets for the search process to count. */
export function searchedFacets(facets: Facets, names: StorageNames): Document {
  return Object.fromEntries(
    [...facets.values()].map((facet, index) => {
      const path = names.path(facet.path);
      const shape =
        facet.type === 'string'
          ? { numBuckets: facet.buckets ?? DEFAULT_BUCKETS }
          : { boundaries: boundariesOf(facet) };
      return [alias(index), { type: facet.type, path, ...shape }];
    }),
  );
}

/** What `$searchMeta` answered. */
export function searchedCounts(answer: Document | undefined, facets: Facets): FacetCounts {
  const counted: unknown = answer?.['facet'];
  const branches = isPlainObject(counted) ? counted : {};
  return {
    total: Number(answer?.['count']?.['total'] ?? 0),
    facets: new Map(
      [...facets.keys()].map((name, index) => {
        const branch = branches[alias(index)];
        return [name, bucketsOf(isPlainObject(branch) ? branch['buckets'] : [])];
      }),
    ),
  };
}

/** The same facets over rows that a filter chose: one branch each, and one for the total. */
export function filteredFacets(facets: Facets, names: StorageNames): Document {
  const branches = [...facets.values()].map((facet, index) => [
    alias(index),
    facet.type === 'string' ? valueBranch(facet, names) : rangeBranch(facet, names),
  ]);
  return { ...Object.fromEntries(branches), total: [{ $count: 'count' }] };
}

function valueBranch(facet: Facet, names: StorageNames): Document[] {
  const field = `$${names.path(facet.path)}`;
  return [
    { $unwind: field },
    { $group: { _id: { value: field, row: '$_id' } } },
    { $group: { _id: '$_id.value', count: { $sum: 1 } } },
    { $match: { _id: { $type: 'string' } } },
    { $sort: { count: -1, _id: 1 } },
    { $limit: facet.buckets ?? DEFAULT_BUCKETS },
  ];
}

function rangeBranch(facet: Facet, names: StorageNames): Document[] {
  const path = names.path(facet.path);
  return [
    { $match: { [path]: { $type: facet.type } } },
    {
      $bucket: {
        groupBy: `$${path}`,
        boundaries: boundariesOf(facet),
        default: OUTSIDE,
        output: { count: { $sum: 1 } },
      },
    },
    { $match: { _id: { $ne: OUTSIDE } } },
  ];
}

/** What `$facet` answered; ranges without rows are told as the search process tells them. */
export function filteredCounts(answer: Document | undefined, facets: Facets): FacetCounts {
  const total: unknown = answer?.['total']?.[0]?.count;
  return {
    total: Number(total ?? 0),
    facets: new Map(
      [...facets].map(([name, facet], index) => {
        const found = bucketsOf(answer?.[alias(index)]);
        return [name, facet.type === 'string' ? found : everyRange(facet, found)];
      }),
    ),
  };
}

function everyRange({ boundaries = [] }: Facet, found: readonly FacetBucket[]): FacetBucket[] {
  const counts = new Map(found.map(({ _id, count }) => [_id, count]));
  return boundaries.slice(0, -1).map((_id) => ({ _id, count: counts.get(_id) ?? 0 }));
}

function bucketsOf(value: unknown): FacetBucket[] {
  if (!Array.isArray(value)) return [];
  return value
    .filter(isPlainObject)
    .map(({ _id, count }) => ({ _id: valueFromStorage(_id, 'text'), count: Number(count ?? 0) }));
}
