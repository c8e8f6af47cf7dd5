import type { FacetCounts, SearchHit } from './record-search.js';

/** Arguments as callers wrote them: untrusted, judged inside. */
export interface TextSearchRequest {
  readonly query: string;
  /** Default: every readable field with text. */
  readonly fields?: readonly string[] | undefined;
  readonly highlightField?: string | undefined;
  /** Parse constraint on the rows found. */
  readonly filter?: unknown;
  readonly limit: number;
}

export interface AutocompleteRequest {
  readonly query: string;
  readonly field: string;
  readonly fuzzy: boolean;
  readonly limit: number;
}

export interface FacetRequest {
  /** Empty: every row. */
  readonly query: string;
  /** Name to `{ path, type, boundaries }`. */
  readonly facets: unknown;
  /** Rows to show beside the counts. */
  readonly limit: number;
}

export interface Completions {
  /** Different values of the field, best first. */
  readonly suggestions: readonly string[];
  readonly hits: readonly SearchHit[];
}

export interface CountedFacets extends FacetCounts {
  readonly hits: readonly SearchHit[];
}

/** Constraints of a search by likeness, on the fields that the policy lists for it. */
export interface LikenessFilters {
  /** On the rows found. */
  readonly filter?: unknown;
  /** Inside the search, before rows are ranked. */
  readonly vectorFilter?: unknown;
}

export interface NearestRequest extends LikenessFilters {
  readonly vector: readonly number[];
  readonly limit: number;
  /** Id of a row to leave out. */
  readonly except?: string;
}

/** A class that this agent may search by likeness: its gates have passed. */
export interface LikenessSearch {
  readonly className: string;
  /** Wire name of the vector. */
  readonly field: string;
  /** Texts that the vector stands for and the agent may read, the first one first. */
  readonly textFields: readonly string[];
  /** The wire name of any spelling of a field. */
  wireName(field: string): string;
  /** Refuses what `nearest` would refuse of these, reading nothing. */
  check(filters: LikenessFilters): void;
  /** The stored vector of a row. @throws Refused `parse_error` when there is no such row for this agent */
  vectorOf(objectId: string): Promise<readonly number[]>;
  nearest(request: NearestRequest): Promise<SearchHit[]>;
}

/**
 * The door from a tool to full-text and vector search, bound to one call. As for `GovernedRecords`: class gate → fields →
 * tenant, agent and canonical filters → search → redaction, and none can be skipped.
 * @throws Refused
 */
export interface GovernedSearch {
  /** Rows by words, best first. */
  text(className: unknown, request: TextSearchRequest): Promise<SearchHit[]>;
  /** What a beginning may become. */
  autocomplete(className: unknown, request: AutocompleteRequest): Promise<Completions>;
  /** Counts per value or range. @throws Refused `atlas_facet_filter_unsafe` where a filter could not be carried into the counts */
  facets(className: unknown, request: FacetRequest): Promise<CountedFacets>;
  /** Search by meaning, once it is known that the class permits it. */
  likeness(className: unknown): Promise<LikenessSearch>;
}
