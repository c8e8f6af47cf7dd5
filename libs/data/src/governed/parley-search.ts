import { type Agent, orThrow, type Refusal, refusals, refuse, isJsonObject } from '#core';
import {
  mergeFilters,
  allTextFields,
  assertNothingDenied,
  type ClassAccess,
  listCountedTextFields,
  facetField,
  parseIsoDate,
  withoutWithheldObjects,
  redact,
  checkSearchedField,
  type TenantBinding,
  type Where,
} from '#policy';
import type {
  AutocompleteRequest,
  Completions,
  CountedFacets,
  FacetRequest,
  GovernedSearch,
  SimilaritySearch,
  TextSearchRequest,
} from '../governed-access.js';
import type { Run } from '../metering/metered-stores.js';
import type { Facet, FacetBucket, Searches, SearchHit, TextMatch } from '../record-search.js';
import type { ParseRow } from '../record-store.js';
import { enterClass, type GovernedCall } from './governed-call.js';
import { hitColumns, showHits, findTexts } from './shown-rows.js';
import { RowRules } from './row-rules.js';
import { openVectorSearch } from './vector-search.js';

/** The governed search of one call. See `GovernedSearch` for its guarantees. */
export class ParleySearch implements GovernedSearch {
  private readonly rules: RowRules;

  constructor(
    private readonly call: GovernedCall,
    private readonly search: Run<Searches>,
  ) {
    this.rules = new RowRules(call);
  }

  async text(className: unknown, request: TextSearchRequest): Promise<SearchHit[]> {
    const access = enterClass(this.call, className, 'find');
    const query = nonBlank(request.query);
    const { highlightField, fields = [] } = request;
    const highlight = highlightField && checkSearchedField(highlightField, access, 'highlight_field');
    const paths =
      fields.length > 0
        ? fields.map((name) => checkSearchedField(name, access, 'fields'))
        : allTextFields(access);
    const match: TextMatch = { kind: 'text', query, paths: [...new Set(paths)] };
    const rows = await this.rows(access, [...paths, ...(highlight ? [highlight] : [])], request.filter);
    return this.hits(access, { match, ...rows, limit: request.limit, ...(highlight && { highlight }) });
  }

  async autocomplete(
    className: unknown,
    { query: written, field, fuzzy, limit }: AutocompleteRequest,
  ): Promise<Completions> {
    const access = enterClass(this.call, className, 'find');
    const query = nonBlank(written);
    const path = checkSearchedField(field, access, 'field');
    const match: TextMatch = { kind: 'autocomplete', query, path, fuzzy };
    const hits = await this.hits(access, { match, ...(await this.rows(access, [path])), limit });
    return { hits, suggestions: [...new Set(hits.flatMap(({ row }) => textsAt(row, path.split('.'))))] };
  }

  async facets(className: unknown, { query, facets, limit }: FacetRequest): Promise<CountedFacets> {
    const { agent, scope } = this.call;
    orThrow(facetsRefusal(agent));
    const access = enterClass(this.call, className, 'find');
    await this.refuseFilters(access.className);
    const planned = planFacets(facets, access);
    const match: TextMatch =
      query.trim() === ''
        ? { kind: 'everything' }
        : { kind: 'text', query, paths: listCountedTextFields(access) };
    const rights = scope.rights.rows(access.className, 'find');
    if (rights) this.call.trace?.noteLimit(access.className, 'row rights', rights);
    const where = mergeFilters(rights);
    const counted = await this.search({
      kind: 'facets',
      className: access.className,
      index: this.findIndex(access),
      match,
      facets: planned,
      where,
    });
    const hits = await this.hits(access, { match, where, isLimited: rights !== null, limit });
    const shown = [...counted.facets].map(
      ([name, buckets]) =>
        [
          name,
          redact(
            buckets,
            scope.withholding,
            findTexts(access, planned.get(name)?.path ?? '', this.call),
          ) as FacetBucket[],
        ] as const,
    );
    return { total: counted.total, facets: new Map(shown), hits };
  }

  likeness(className: unknown): Promise<SimilaritySearch> {
    return openVectorSearch({ call: this.call, rules: this.rules, search: this.search }, className);
  }

  /** The caller's filter combined with every predicate that limits the rows of the class, and those of the searched paths. */
  private async rows(access: ClassAccess, paths: readonly string[], filter?: unknown): Promise<SearchedRows> {
    if (filter !== undefined) assertNothingDenied(filter, 'filter');
    const options = { canonical: true, operation: 'find' } as const;
    const { where, limits } = await this.rules.composePredicate(access, filter, options);
    const ofPaths = mergeFilters(...paths.map((path) => withoutWithheldObjects(path, access)));
    return { where: mergeFilters(where, ofPaths), isLimited: isActive(limits) || isActive(ofPaths) };
  }

  /** Refuses facets where one of these predicates could not be applied to the counts. */
  private async refuseFilters(className: string): Promise<void> {
    const { scope, agent } = this.call;
    const agentFilter = await scope.agentFilter(agent, className);
    const active = filtersOfFacets(this.call, className, agentFilter, this.rules.tenant(className));
    if (active.length > 0) throw refuse.facetFilterUnsafe(className, active);
  }

  private async hits(
    access: ClassAccess,
    { isLimited, ...search }: SearchedRows & { match: TextMatch; limit: number; highlight?: string },
  ): Promise<SearchHit[]> {
    const columns = hitColumns(access);
    const { keys } = columns;
    this.call.trace?.notePassed('search', access.className);
    const found = await this.search({
      kind: 'text',
      className: access.className,
      index: this.findIndex(access),
      ...search,
      ranksByIndex: !isLimited,
      ...(keys && { keys }),
    });
    // The score of a word counts the rows that contain it, in the whole index.
    const scored = isLimited ? found.map((hit) => ({ ...hit, score: null })) : found;
    return showHits(scored, this.call, columns, search.highlight);
  }

  private findIndex({ className }: ClassAccess): string {
    return this.call.scope.classPolicy(className).searchIndex;
  }
}

interface SearchedRows {
  readonly where: Where;
  /** Whether the index contains rows that the caller may not read. */
  readonly isLimited: boolean;
}

const isActive = (where: Where | null): boolean => where !== null && Object.keys(where).length > 0;

/** The filters of a class that cannot be applied to the counts of facets, in words. */
export function filtersOfFacets(
  { scope, agent }: Pick<GovernedCall, 'scope' | 'agent'>,
  className: string,
  agentFilter: Where | null,
  tenant: TenantBinding | null,
): string[] {
  return [
    ...(isActive(agentFilter) ? ['the filter of this agent'] : []),
    ...(isActive(scope.canonicalFilter(agent, className)) ? ['the default filter of the class'] : []),
    ...(tenant ? ['the tenant scope'] : []),
  ];
}

/** Facets need an agent that was built for them. */
export function facetsRefusal({ definition }: Agent): Refusal | null {
  return definition.masterAtlas ? null : refusals.masterAtlasRequired();
}

function nonBlank(query: string): string {
  if (query.trim() === '') throw refuse.invalidArgument('query must not be blank');
  return query;
}

/** The texts at a path, through lists. */
function textsAt(value: unknown, path: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((entry) => textsAt(entry, path));
  const [name, ...rest] = path;
  if (name === undefined) return typeof value === 'string' ? [value] : [];
  return value !== null && typeof value === 'object' ? textsAt((value as ParseRow)[name], rest) : [];
}

const TYPES = ['string', 'number', 'date'] as const;
const MAX_FACETS = 20;
const MAX_BOUNDARIES = 1000;
const MAX_BUCKETS = 1000;
const NAME = /^[A-Za-z][A-Za-z0-9_ -]{0,63}$/;

type Members = Readonly<Record<string, unknown>>;

/** Facets as a caller wrote them, on fields it may read. @throws Refused */
function planFacets(facets: unknown, access: ClassAccess): ReadonlyMap<string, Facet> {
  const entries = isJsonObject(facets) ? Object.entries(facets) : [];
  if (entries.length === 0) refuseFacets('facets must be an object that names at least one facet');
  if (entries.length > MAX_FACETS) refuseFacets(`facets holds at most ${MAX_FACETS} entries`);
  return new Map(entries.map(([name, facet]) => [facetName(name), planFacet(name, facet, access)]));
}

function facetName(name: string): string {
  return NAME.test(name)
    ? name
    : refuseFacets('names of facets are letters, digits, _, - and spaces, at most 64');
}

function planFacet(name: string, facet: unknown, access: ClassAccess): Facet {
  if (!isJsonObject(facet)) return refuseFacets(`facets.${name} must be an object with a path`);
  const { path: written, type: kind = 'string' } = facet;
  if (typeof written !== 'string' || written === '')
    return refuseFacets(`facets.${name}.path must be a field name`);
  const path = facetField(written, access, `facets.${name}.path`);
  const type = TYPES.find((known) => known === kind);
  if (!type) return refuseFacets(`facets.${name}.type must be one of ${TYPES.join(', ')}`);
  if (type === 'string') return { type, path, ...buckets(name, facet) };
  return { type, path, boundaries: boundaries(name, type, facet['boundaries']) };
}

function buckets(name: string, facet: Members): Pick<Facet, 'buckets'> {
  const given = facet['num_buckets'] ?? facet['numBuckets'];
  if (given === undefined) return {};
  if (!Number.isInteger(given) || (given as number) < 1 || (given as number) > MAX_BUCKETS)
    return refuseFacets(`facets.${name}.num_buckets must be between 1 and ${MAX_BUCKETS}`);
  return { buckets: given as number };
}

function boundaries(name: string, type: 'number' | 'date', given: unknown): readonly (number | string)[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [];
  if (list.length < 2 || list.length > MAX_BOUNDARIES)
    return refuseFacets(`facets.${name}.boundaries must hold between 2 and ${MAX_BOUNDARIES} values`);
  const read = list.map((value) => (type === 'number' ? readNumber(value) : readInstant(value)));
  const ascending = read.every(
    (value, i) => !Number.isNaN(value) && (i === 0 || (read[i - 1] as number) < value),
  );
  if (!ascending) return refuseFacets(`facets.${name}.boundaries must be ${type}s in ascending order`);
  return type === 'number' ? read : read.map((value) => new Date(value).toISOString());
}

const readNumber = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) ? value : NaN;

/** ISO text or a Parse date. */
function readInstant(value: unknown): number {
  const text = isJsonObject(value) && value['__type'] === 'Date' ? value['iso'] : value;
  return typeof text === 'string' ? (parseIsoDate(text)?.getTime() ?? NaN) : NaN;
}

function refuseFacets(message: string): never {
  throw refuse.invalidArgument(message);
}
