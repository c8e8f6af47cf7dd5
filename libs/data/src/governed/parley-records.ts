import { type Refusal, refusals, Refused, refuse } from '#core';
import {
  mergeFilters,
  type ClassAccess,
  type IndexSchema,
  idForm,
  isIdFor,
  isOwnRow,
  isRefusal,
  mayShow,
  noteColumn,
  noteKey,
  parseKeys,
  type ReadOperation,
} from '#policy';
import type {
  AggregateOptions,
  AggregateResult,
  FindOptions,
  GovernedClass,
  GovernedRecords,
  RowPage,
} from '../governed-access.js';
import type { FindQuery, ParseRow, PlannedQuery, QueryPlan } from '../record-store.js';
import { GovernedAggregation } from './governed-aggregation.js';
import { explain, listJoinedReads, refuseCollectionScan, readableIndexes } from './query-plan.js';
import {
  mayInclude,
  plainColumns,
  readColumns,
  type ReadColumns,
  readOptOut,
  readOrder,
  readPage,
} from './read-plan.js';
import { createReach, enterClass, type GovernedCall } from './governed-call.js';
import { mayScan, showClass, showRows } from './shown-rows.js';
import { RowRules } from './row-rules.js';
import { findListClass, IncludeResolver } from './included-rows.js';

type RowsAsked = Pick<FindQuery, 'where' | 'limit'> & Partial<Pick<FindQuery, 'skip' | 'order'>>;

/** Governed records of one call. The order of the checks is that of docs/contributing/life-of-a-call.md. */
export class ParleyRecords implements GovernedRecords {
  private readonly rules: RowRules;

  constructor(private readonly call: GovernedCall) {
    this.rules = new RowRules(call);
  }

  async find(className: unknown, options: FindOptions = {}): Promise<ParseRow[]> {
    return (await this.page(className, options)).rows;
  }

  async page(className: unknown, options: FindOptions = {}): Promise<RowPage> {
    const access = enterClass(this.call, className, 'find');
    const canonical = !readOptOut(options.applyCanonicalFilter);
    const { where: admitted } = await this.rules.composePredicate(access, options.where, {
      canonical,
      operation: 'find',
    });
    if (options.after !== undefined && access.schema?.mixedIds)
      this.refuse(refusals.mixedIds(access.className));
    const { limit, skip } = readPage(options);
    const { where, order } = readOrder(admitted, options, access);
    for (const { field } of order) noteColumn(access.names.wirePath(field), access, this.call.note);
    const columns = await this.columns(options, access, { where, limit, skip, order });
    // A walk along the ids reads as much as one without an order.
    const ordered = options.after === undefined && { order };
    if (!options.expectsScan) await this.refuseScan({ className: access.className, where, ...ordered });
    // One row more than the limit shows whether there are more.
    const read = options.tellsMore ? limit + 1 : limit;
    const query = { className: access.className, where, limit: read, skip, order, ...columns.asked };
    const found = await this.call.read(
      { kind: 'findShown', ...query, atMost: Math.min(options.atMost ?? limit, limit) },
      options.where,
    );
    const { count, rows, passed = count } = found;
    return {
      rows: showRows(rows, this.call, columns.guard).map(columns.narrow),
      count: Math.min(count, limit),
      passed: Math.min(passed, limit),
      ...(options.tellsMore && { more: passed > limit }),
      ...(columns.truncated && { truncatedIncludeFields: columns.truncated }),
    };
  }

  async count(
    className: unknown,
    options: Pick<FindOptions, 'where' | 'applyCanonicalFilter'> = {},
  ): Promise<number> {
    const access = enterClass(this.call, className, 'count');
    const canonical = !readOptOut(options.applyCanonicalFilter);
    const { where } = await this.rules.composePredicate(access, options.where, {
      canonical,
      operation: 'count',
    });
    await this.refuseScan({ className: access.className, where });
    return this.call.read({ kind: 'count', className: access.className, where });
  }

  async get(
    className: unknown,
    objectId: unknown,
    options: Pick<FindOptions, 'keys' | 'include'> = {},
  ): Promise<RowPage> {
    if (objectId === undefined || objectId === null || objectId === '') {
      throw refuse.invalidArgument('missing required argument: object_id');
    }
    const access = enterClass(this.call, className, 'get');
    const page = await this.byIds(access, [objectId], options);
    if (page.rows.length > 0) return page;
    throw new Refused(await this.rules.noSuchRow(access.className, [objectId as string]));
  }

  async getMany(
    className: unknown,
    objectIds: readonly string[],
    options: Pick<FindOptions, 'keys' | 'include'> = {},
  ): Promise<RowPage> {
    return this.byIds(enterClass(this.call, className, 'get'), objectIds, options);
  }

  async samples(className: unknown, limit: number): Promise<ParseRow[]> {
    const { readable } = enterClass(this.call, className, 'find');
    // A column that permissions may hide decides which rows are the newest.
    const order = (readable?.has('createdAt') ?? true) ? '-createdAt' : undefined;
    return this.find(className, { limit, order, expectsScan: true });
  }

  async aggregate(
    className: unknown,
    pipeline: unknown,
    options: AggregateOptions = {},
  ): Promise<AggregateResult> {
    const access = enterClass(this.call, className, 'find');
    const { stages, leading, autoLimited, results } = await this.aggregation.govern(
      access,
      pipeline,
      options,
    );
    for (const query of [{ className: access.className, where: leading }, ...listJoinedReads(stages)])
      await this.refuseScan(query);
    const { rows, route } = await this.call.read({
      kind: 'aggregate',
      className: access.className,
      pipeline: stages,
      ...(options.rewriteLookups !== undefined && { rewriteLookups: options.rewriteLookups }),
    });
    return {
      rows: showRows(rows, this.call, undefined, results),
      route,
      autoLimited,
    };
  }

  async checkAggregate(
    className: unknown,
    pipeline: unknown,
    options: Pick<AggregateOptions, 'where'> = {},
  ): Promise<void> {
    this.aggregation.check(enterClass(this.call, className, 'find'), pipeline, options);
  }

  async explain(className: unknown, options: Pick<FindOptions, 'where'> = {}): Promise<QueryPlan> {
    const access = enterClass(this.call, className, 'find');
    return explain(this.call, this.rules, access, options.where);
  }

  async admit(className: unknown, operation: ReadOperation = 'find'): Promise<GovernedClass> {
    const access = enterClass(this.call, className, operation);
    this.rules.tenant(access.className);
    return this.describeClass(access);
  }

  async classes(): Promise<readonly GovernedClass[]> {
    const { scope } = this.call;
    return scope.schemas
      .classNames()
      .filter((name) => scope.isListed(name))
      .flatMap((name) => showClass(scope.access(name), this.call) ?? []);
  }

  async describe(className: unknown): Promise<GovernedClass> {
    return this.describeClass(enterClass(this.call, className, 'describe'));
  }

  async indexes(className: unknown): Promise<readonly IndexSchema[]> {
    return readableIndexes(enterClass(this.call, className, 'describe'), this.call);
  }

  private describeClass(access: ClassAccess): GovernedClass {
    const known = showClass(access, this.call);
    if (!known) throw refuse.unknownClass(access.className, []);
    return known;
  }

  private get aggregation(): GovernedAggregation {
    return new GovernedAggregation(this.call, this.rules);
  }

  private async columns(
    options: Pick<FindOptions, 'keys' | 'include'>,
    access: ClassAccess,
    rows: RowsAsked,
  ): Promise<ReadColumns> {
    const { keys, include } = options;
    for (const key of Array.isArray(keys) ? keys : [])
      if (typeof key === 'string') noteKey(key, access, this.call.note);
    if (!mayInclude(options)) return plainColumns(keys, access);
    const lists = IncludeResolver.listUndeclaredLists(include, access, this.call);
    const classes = lists.length > 0 ? await this.listClasses(lists, access, rows) : undefined;
    const resolver = new IncludeResolver(this.call, this.rules, classes);
    return readColumns(await resolver.resolve(include, access, parseKeys(keys, access)));
  }

  /** Parse declares no class for the pointers in a list: the rows that are asked for tell it. */
  private async listClasses(
    lists: readonly string[],
    { className }: ClassAccess,
    rows: RowsAsked,
  ): Promise<ReadonlyMap<string, string>> {
    const found = await this.call.read({ kind: 'find', className, ...rows, keys: lists });
    const reach = createReach(this.call);
    return new Map(
      lists.flatMap((field) => {
        const target = findListClass(found, field);
        return target !== null && !isRefusal(reach.reach(target, 'include'))
          ? [[field, target] as const]
          : [];
      }),
    );
  }

  /**
   * In a tenant's class an id that matches none of its rows refuses the whole call; in other classes such a row is absent.
   */
  private async byIds(
    access: ClassAccess,
    ids: readonly unknown[],
    options: Pick<FindOptions, 'keys' | 'include'>,
  ): Promise<RowPage> {
    for (const id of ids) {
      if (!isIdFor(access.schema, id)) this.refuse(refusals.invalidArgument(idForm(access.schema)));
    }
    if (ids.length === 0) return { rows: [] };
    const { tenant, where: limits } = await this.rules.predicate(access.className, {
      canonical: false,
      operation: 'get',
    });
    const where = mergeFilters({ objectId: ids.length === 1 ? ids[0] : { $in: ids } }, limits);
    const columns = await this.columns(options, access, { where, limit: ids.length });
    const { keys, include } = columns.asked;
    // Read only for the check of the row, where it was not requested.
    const addedTenant = tenant !== null && !(keys?.includes(tenant.field) ?? mayShow(access, tenant.field));
    const projected = keys && tenant ? [...new Set([...keys, tenant.field])] : keys;
    const found = await this.call.read({
      kind: 'find',
      className: access.className,
      where,
      limit: ids.length,
      include,
      ...(projected && { keys: projected }),
    });
    const rows = tenant ? found.filter((row) => isOwnRow(tenant, row)) : found;
    if (tenant) {
      const own = new Set(rows.map((row) => row['objectId']));
      const others = [...new Set(ids)].filter((id) => !own.has(id));
      if (others.length > 0)
        throw new Refused(await this.rules.noSuchRow(access.className, others as readonly string[]));
      if (addedTenant) for (const row of rows) delete row[tenant.field];
    }
    return {
      rows: showRows(rows, this.call, columns.guard).map(columns.narrow),
      ...(columns.truncated && { truncatedIncludeFields: columns.truncated }),
    };
  }

  /** Refuses a scan of a whole collection where the policy asks for it. @throws Refused */
  private async refuseScan(query: PlannedQuery): Promise<void> {
    if (!mayScan(query.className, this.call)) await refuseCollectionScan(this.call, query);
  }

  private refuse(refusal: Refusal | null): void {
    if (refusal) throw new Refused(refusal);
  }
}
