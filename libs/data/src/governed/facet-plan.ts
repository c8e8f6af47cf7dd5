import { Refused, refusals } from '#agent';
import { type ClassAccess, facetField } from '#policy';
import type { Facet } from '../record-search.js';

const TYPES = ['string', 'number', 'date'] as const;
const MAX_FACETS = 20;
const MAX_BOUNDARIES = 1000;
const MAX_BUCKETS = 1000;
const NAME = /^[A-Za-z][A-Za-z0-9_ -]{0,63}$/;

type Members = Readonly<Record<string, unknown>>;

/** Facets as a caller wrote them, on fields it may read. @throws Refused */
export function planFacets(facets: unknown, access: ClassAccess): ReadonlyMap<string, Facet> {
  const entries = isObject(facets) ? Object.entries(facets) : [];
  if (entries.length === 0) refuse('facets must be an object that names at least one facet');
  if (entries.length > MAX_FACETS) refuse(`facets holds at most ${MAX_FACETS} entries`);
  return new Map(entries.map(([name, facet]) => [facetName(name), planFacet(name, facet, access)]));
}

function facetName(name: string): string {
  return NAME.test(name) ? name : refuse('names of facets are letters, digits, _, - and spaces, at most 64');
}

function planFacet(name: string, facet: unknown, access: ClassAccess): Facet {
  if (!isObject(facet)) return refuse(`facets.${name} must be an object with a path`);
  const { path: written, type: kind = 'string' } = facet;
  if (typeof written !== 'string' || written === '')
    return refuse(`facets.${name}.path must be a field name`);
  const path = facetField(written, access, `facets.${name}.path`);
  const type = TYPES.find((known) => known === kind);
  if (!type) return refuse(`facets.${name}.type must be one of ${TYPES.join(', ')}`);
  if (type === 'string') return { type, path, ...buckets(name, facet) };
  return { type, path, boundaries: boundaries(name, type, facet['boundaries']) };
}

function buckets(name: string, facet: Members): Pick<Facet, 'buckets'> {
  const given = facet['num_buckets'] ?? facet['numBuckets'];
  if (given === undefined) return {};
  if (!Number.isInteger(given) || (given as number) < 1 || (given as number) > MAX_BUCKETS)
    return refuse(`facets.${name}.num_buckets must be between 1 and ${MAX_BUCKETS}`);
  return { buckets: given as number };
}

function boundaries(name: string, type: 'number' | 'date', given: unknown): readonly (number | string)[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [];
  if (list.length < 2 || list.length > MAX_BOUNDARIES)
    return refuse(`facets.${name}.boundaries must hold between 2 and ${MAX_BOUNDARIES} values`);
  const read = list.map((value) => (type === 'number' ? numberOf(value) : instantOf(value)));
  const ascending = read.every(
    (value, i) => !Number.isNaN(value) && (i === 0 || (read[i - 1] as number) < value),
  );
  if (!ascending) return refuse(`facets.${name}.boundaries must be ${type}s in ascending order`);
  return type === 'number' ? read : read.map((value) => new Date(value).toISOString());
}

const numberOf = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) ? value : NaN;

/** ISO text or a Parse date. */
function instantOf(value: unknown): number {
  const text = isObject(value) && value['__type'] === 'Date' ? value['iso'] : value;
  return typeof text === 'string' ? Date.parse(text) : NaN;
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuse(message: string): never {
  throw new Refused(refusals.invalidArgument(message));
}
