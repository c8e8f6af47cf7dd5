import { Refused, refuse } from '#core';
import {
  mergeFilters,
  type CrossClassQuery,
  holdsWithheld,
  type RelationQuery,
  type ValueType,
  type Where,
} from '#policy';
import { MIN_VALUE_BYTES, valueWeight } from '../answers/answer-memory.js';
import type { FindQuery, ParseRow, RelatedQuery } from '../record-store.js';
import { type GovernedCall, type PredicateOptions } from './governed-call.js';
import { mayScan } from './shown-rows.js';
import { refuseCollectionScan } from './query-plan.js';

/** Maximum bytes of the results of all subqueries of a call: they become part of its query. */
const MAX_ANSWER_VALUES = 4 * 1024 * 1024;

/** The author of a subquery: results for a caller are limited to the rows that exist for the agent. */
export type Asker = 'caller' | 'operator';

type RowsOf = Extract<CrossClassQuery, { operator: '$inQuery' | '$select' | '$notInQuery' | '$dontSelect' }>;
type MembersOf = Extract<CrossClassQuery, { operator: '$relatedTo' }>;

const NOTHING: Where = { objectId: { $in: [] } };

/**
 * Asks the subqueries of one call, each under the rules of the class that it asks about. Results are lists of values, which are
 * bounded together.
 */
export class CrossClassAnswers {
  /** Bytes that the results of further subqueries may have. */
  private left = MAX_ANSWER_VALUES;

  constructor(
    private readonly call: GovernedCall,
    private readonly predicate: (className: string, options: PredicateOptions) => Promise<{ where: Where }>,
  ) {}

  /** The constraint that takes the place of the subquery. @throws Refused */
  answer(query: CrossClassQuery, asker: Asker): Promise<Where> {
    switch (query.operator) {
      case '$relatedTo':
        return this.findMembers(query, asker);
      case '$inRelation':
      case '$notInRelation':
        return this.findHolders(query, asker);
      default:
        return this.findValues(query, asker);
    }
  }

  private async findValues(query: RowsOf, asker: Asker): Promise<Where> {
    const { className, operator, field } = query;
    const key = 'key' in query ? query.key : 'objectId';
    const rows = await this.rows(query, { key, operator }, asker);
    const values =
      'key' in query
        ? this.comparable(
            rows.flatMap((row) => valuesAt(row, key)),
            asker,
            this.call.scope.withholding.rowType(className)?.member?.(key),
          )
        : rows.map((row) => ({ __type: 'Pointer', className, objectId: row['objectId'] }));
    return { [field]: { [operator === '$inQuery' || operator === '$select' ? '$in' : '$nin']: values } };
  }

  /** The rows that a subquery finds; of a caller, among those that exist for it. */
  private async rows(
    { className, where }: { readonly className: string; readonly where: Where },
    { key, operator }: { readonly key: string; readonly operator: string },
    asker: Asker,
  ): Promise<ParseRow[]> {
    const options = { canonical: true, operation: 'find' } as const;
    const limits = asker === 'caller' ? (await this.predicate(className, options)).where : {};
    const asked = { className, where: mergeFilters(limits, where) };
    if (asker === 'caller' && !mayScan(className, this.call)) await refuseCollectionScan(this.call, asked);
    const rows = await this.find({ ...asked, keys: [key] }, asker).catch((error: unknown) => {
      const tooLarge = error instanceof Refused && error.refusal.details?.['kind'] === 'answer_size';
      throw tooLarge && error.refusal.code === 'invalid_query' ? tooMany(operator, className) : error;
    });
    this.spend(rows.length, valueWeight(rows), operator, className);
    return rows;
  }

  /** A store that returns fewer rows to the caller would make an operator's `$notInQuery` match more. */
  private find(query: Omit<FindQuery, 'limit'>, asker: Asker): Promise<ParseRow[]> {
    const { read, readAsOperator } = this.call;
    const bounds = { limit: this.limit, maxBytes: this.left };
    return (asker === 'caller' ? read : readAsOperator)({ kind: 'find', ...query, ...bounds });
  }

  /** Fields of another class that the caller may not read cannot be compared either. */
  private comparable(
    values: readonly unknown[],
    asker: Asker,
    type: ValueType | undefined,
  ): readonly unknown[] {
    if (asker === 'operator') return values;
    const { withholding } = this.call.scope;
    return values.filter((value) => !holdsWithheld(value, withholding, type));
  }

  /** A relation of a row that does not exist for the caller has no members. */
  private async findMembers(
    { object: { className, objectId }, key }: MembersOf,
    asker: Asker,
  ): Promise<Where> {
    if (asker === 'caller' && (await this.keepSeen(className, [objectId])).length === 0) return NOTHING;
    return { objectId: { $in: await this.related({ className, objectId, key }, '$relatedTo') } };
  }

  /** A member that does not exist for the caller is held by no row. */
  private async findHolders(query: RelationQuery, asker: Asker): Promise<Where> {
    const { className, field: key, members, operator } = query;
    const ids = await this.memberIds(query, asker);
    const holders =
      ids.length === 0
        ? []
        : await this.related(
            { className, key, members: ids },
            `The relation '${key}' to '${members.className}'`,
          );
    return { objectId: { [operator === '$inRelation' ? '$in' : '$nin']: holders } };
  }

  private async memberIds({ members, field }: RelationQuery, asker: Asker): Promise<readonly string[]> {
    if ('where' in members) {
      const rows = await this.rows(members, { key: 'objectId', operator: `A query on '${field}'` }, asker);
      return rows.map((row) => String(row['objectId']));
    }
    return asker === 'operator' ? members.ids : this.keepSeen(members.className, members.ids);
  }

  /** Those of the ids that name rows which exist for the caller. */
  private async keepSeen(className: string, ids: readonly string[]): Promise<string[]> {
    const { where } = await this.predicate(className, { canonical: false, operation: 'get' });
    const named = { objectId: ids.length === 1 ? ids[0] : { $in: ids } };
    const rows = await this.find(
      { className, where: mergeFilters(named, where), keys: ['objectId'] },
      'caller',
    );
    return rows.map((row) => String(row['objectId']));
  }

  /** Pairs of a relation have no rights of their own: the rows at both of its ends have. */
  private async related(
    query: DistributiveOmit<RelatedQuery, 'limit'>,
    operator: string,
  ): Promise<readonly string[]> {
    const { limit } = this;
    const ids = await this.call.readAsOperator({ kind: 'related', ...query, limit });
    this.spend(ids.length, valueWeight(ids), operator, query.className);
    return [...new Set(ids)];
  }

  /** One more than fit. */
  private get limit(): number {
    return Math.floor(this.left / MIN_VALUE_BYTES) + 1;
  }

  private spend(count: number, weight: number, operator: string, className: string): void {
    const fits = count < this.limit && weight - MIN_VALUE_BYTES <= this.left;
    if (!fits) throw tooMany(operator, className);
    this.left = Math.max(0, this.left - weight);
  }
}

const tooMany = (operator: string, className: string): Refused => refuse.tooManyAnswers(operator, className);

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** The values at a path, in each element of a list on the way, as the database compares them. */
function valuesAt(row: ParseRow, path: string): unknown[] {
  return path.split('.').reduce<unknown[]>(
    (values, segment) =>
      values
        .flat()
        .map((value) =>
          value !== null && typeof value === 'object' ? (value as ParseRow)[segment] : undefined,
        )
        .filter((value) => value !== undefined),
    [row],
  );
}
