import { cutText, Refused, refuse } from '#core';
import {
  assertOptions,
  type OptionNames,
  mergeFilters,
  hasCrossClassQuery,
  type ClassAccess,
  isMasked,
  idForm,
  isIdFor,
  isOwnRow,
  keepsTenantsApart,
  mayShow,
  type SearchablePolicy,
  stringFields,
  type Where,
} from '#policy';
import type { NearestRequest, NearestRows, SimilaritySearch, VectorFilters } from '../governed-access.js';
import type { Run } from '../metering/metered-stores.js';
import type { Searches } from '../record-search.js';
import { splitFilter } from './carried-filter.js';
import { type ClassGate, enterClass, type GovernedCall } from './governed-call.js';
import { hitColumns, showHits } from './shown-rows.js';
import type { RowRules } from './row-rules.js';

/** Rows requested from the search per wanted row, and the minimum: other limits remove some of them. */
const CANDIDATES = { perRow: 10, least: 100 };

interface VectorSearchDependencies {
  readonly call: GovernedCall;
  readonly rules: RowRules;
  readonly search: Run<Searches>;
}

export async function openVectorSearch(
  inner: VectorSearchDependencies,
  className: unknown,
): Promise<SimilaritySearch> {
  const { call } = inner;
  const { access, searchable } = admitVectorSearch(call, className);
  inner.rules.tenant(access.className);
  call.trace?.notePassed('searchable', access.className);
  return new ParleyVectorSearch(inner, access, searchable);
}

/**
 * The gates of a vector search, in order: the class is declared searchable, the class gate, a tenant rule where other classes
 * have one, and neither the vector nor its source text is hidden from the caller. The agent's own tenant is checked after them.
 * @throws Refused
 */
export function admitVectorSearch(
  call: ClassGate,
  className: unknown,
): { readonly access: ClassAccess; readonly searchable: SearchablePolicy } {
  const name = call.scope.resolveName(className);
  if (typeof name !== 'string') throw new Refused(name);
  const declared = call.scope.classPolicy(name);
  const { searchable } = declared;
  if (!searchable) throw refuse.notSearchable(String(className));
  const access = enterClass(call, className, 'find');
  const { policy } = call.scope;
  if (policy.hasTenantScopes && !keepsTenantsApart(declared, policy))
    throw refuse.missingTenantScope(access.className);
  assertUnprotected(access, searchable);
  return { access, searchable };
}

/** Similarity to a protected or masked text would reveal it. */
function assertUnprotected(access: ClassAccess, { field, textFields }: SearchablePolicy): void {
  // The refusal must not name a field that its caller did not, and cannot see.
  for (const name of [field, ...(textFields ?? [])])
    if (access.guarded?.hidden.has(name) || isMasked(access, name))
      throw refuse.notSearchable(access.className);
}

const FILTER_OPTIONS = { filter: true, vectorFilter: true } satisfies OptionNames<VectorFilters>;
const NEAREST_OPTIONS = {
  ...FILTER_OPTIONS,
  vector: true,
  limit: true,
  except: true,
} satisfies OptionNames<NearestRequest>;

class ParleyVectorSearch implements SimilaritySearch {
  readonly className: string;
  readonly field: string;
  readonly textFields: readonly string[];

  constructor(
    private readonly inner: VectorSearchDependencies,
    private readonly access: ClassAccess,
    private readonly searchable: SearchablePolicy,
  ) {
    this.className = access.className;
    this.field = searchable.field;
    const readable = stringFields(access);
    this.textFields = searchable.textFields?.filter((name) => readable.includes(name)) ?? readable;
  }

  wireName(field: string): string {
    return this.access.names.wireName(field);
  }

  check(filters: VectorFilters): void {
    assertOptions('check', filters, FILTER_OPTIONS);
    const { filter, vectorFilter } = filters;
    this.judgeFilter(filter, 'filter');
    this.judgeInside(vectorFilter);
  }

  async readVector(objectId: string): Promise<readonly number[]> {
    const { access, className, field, inner } = this;
    if (!isIdFor(access.schema, objectId)) throw refuse.invalidArgument(idForm(access.schema));
    const limits = await inner.rules.predicate(className, { canonical: false, operation: 'find' });
    const where = mergeFilters({ objectId }, limits.where);
    const [row] = await inner.call.read({ kind: 'find', className, where, keys: [field], limit: 1 });
    if (!row) throw new Refused(await inner.rules.noSuchRow(className, [objectId]));
    const vector = toVector(row[field]);
    if (vector) return vector;
    throw refuse.invalidArgument(`object '${objectId}' has no vector to compare with`);
  }

  async nearest(request: NearestRequest): Promise<NearestRows> {
    assertOptions('nearest', request, NEAREST_OPTIONS);
    const { vector, limit, except, filter, vectorFilter } = request;
    const { access, className, field, inner, searchable } = this;
    const inside = this.judgeInside(vectorFilter);
    this.assertListed(filter, 'filter');
    const { where, limits } = await inner.rules.composePredicate(access, filter, {
      canonical: true,
      operation: 'find',
    });
    const tenant = inner.rules.tenant(className);
    const columns = hitColumns(access);
    const keys = columns.keys && tenant ? [...new Set([...columns.keys, tenant.field])] : columns.keys;
    const others = except === undefined ? null : { objectId: { $ne: except } };
    // The index can only filter on the fields that it was built for; everything is applied to the found rows in any case.
    const { early, isPartial } = splitFilter(where, searchable.filterFields);
    const found = await inner.search({
      kind: 'nearest',
      className,
      field,
      vector,
      index: searchable.index,
      filter: mergeFilters(...early, inside),
      where: mergeFilters(where, others),
      candidates: Math.max(CANDIDATES.least, limit * CANDIDATES.perRow),
      limit,
      ...(keys && { keys }),
    });
    if (tenant) {
      for (const { row } of found) {
        if (!isOwnRow(tenant, row)) throw refuse.notTenantsRows(className, [String(row['objectId'])]);
        if (!mayShow(access, tenant.field)) delete row[tenant.field];
      }
    }
    const isExact = inner.call.agent.permissions === 'admin' && Object.keys(limits).length === 0;
    const scored = isExact ? found : found.map((hit) => ({ ...hit, score: roundScore(hit.score) }));
    const hits = showHits(scored, inner.call, columns);
    return { hits, mayLackRows: isPartial && hits.length < limit };
  }

  private judgeInside(vectorFilter: unknown): Where {
    const judged = this.judgeFilter(vectorFilter, 'vector_filter');
    if (hasCrossClassQuery(judged))
      throw refuse.invalidQuery('vector_filter cannot ask other classes; use filter');
    return judged;
  }

  private judgeFilter(filter: unknown, argument: string): Where {
    this.assertListed(filter, argument);
    return this.inner.rules.judgeWhere(this.access, filter);
  }

  /** Similarity narrowed by a field that the caller chose reveals the values of that field. */
  private assertListed(filter: unknown, argument: string): void {
    if (filter === undefined || filter === null || typeof filter !== 'object') return;
    if (holdsUnderscoredKey(filter))
      throw refuse.invalidArgument(`${argument} names must not begin with an underscore`);
    const { access, searchable } = this;
    const filterFields = searchable.filterFields.filter(
      (name) => mayShow(access, name) && !isMasked(access, name),
    );
    const listed = filterFields.length > 0 ? filterFields.join(', ') : 'none';
    for (const key of Object.keys(filter)) {
      if (filterFields.includes(this.wireName(key))) continue;
      throw refuse.invalidArgument(
        `${argument} may not name '${cutText(key, 128)}'; filter fields of this class: ${listed}`,
      );
    }
  }
}

/** `__type` is part of a value, not a field name. */
function holdsUnderscoredKey(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return false;
  if (Array.isArray(value)) return value.some(holdsUnderscoredKey);
  return Object.entries(value).some(
    ([key, member]) => (key.startsWith('_') && key !== '__type') || holdsUnderscoredKey(member),
  );
}

/**
 * Precise enough to order by. All of its digits could reveal whether a particular row exists; where the index quantizes its
 * vectors, they also depend on the other ones.
 */
const roundScore = (score: number | null): number | null =>
  score === null ? null : Math.round(score * 10) / 10;

/** An array of numbers, or MongoDB's binary vector of 32-bit floats: the bytes 39 and 0, and the numbers behind them. */
function toVector(value: unknown): readonly number[] | null {
  const { __type: type, base64 } = (value ?? {}) as { readonly __type?: unknown; readonly base64?: unknown };
  if (type !== 'Bytes' || typeof base64 !== 'string') return isVector(value) ? value : null;
  const bytes = Buffer.from(base64, 'base64');
  if (bytes[0] !== FLOAT32_VECTOR || bytes[1] !== 0 || bytes.length % 4 !== 2) return null;
  const numbers = Array.from({ length: (bytes.length - 2) / 4 }, (_, at) => bytes.readFloatLE(2 + 4 * at));
  return isVector(numbers) ? numbers : null;
}

/** First byte of a binary vector of 32-bit floats. */
const FLOAT32_VECTOR = 0x27;

function isVector(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((entry) => typeof entry === 'number' && Number.isFinite(entry))
  );
}
