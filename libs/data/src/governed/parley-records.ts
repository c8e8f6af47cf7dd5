import { isObjectId, Refused, type Refusal, refusals } from '#agent';
import {
  allOf,
  type ClassAccess,
  foreignRow,
  type IndexSchema,
  mayShow,
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
} from '../governed-records.js';
import type { OperationContext, ParseRow, QueryPlan } from '../record-store.js';
import { enterClass } from './class-entry.js';
import { toldIndexes } from './class-indexes.js';
import { CallerConstraints } from './caller-constraints.js';
import { explain } from './explanation.js';
import { GovernedAggregation } from './governed-aggregation.js';
import { IncludeResolver } from './include-plan.js';
import { narrowing, widened } from './key-narrowing.js';
import { readOptOut, readPage } from './page-options.js';
import { type RecordsParts, RowRules } from './row-rules.js';
import { refuseCollectionScan } from './scan-check.js';
import { shownClass, shownRows } from './shown-rows.js';
import { walked } from './walked-rows.js';
import { atStore } from './store-faults.js';

/** The governed door for one call. See `GovernedRecords` for the promise, docs/life-of-a-call.md for the order. */
export class ParleyRecords implements GovernedRecords {
  private readonly rules: RowRules;
  private readonly constraints: CallerConstraints;

  constructor(private readonly parts: RecordsParts) {
    this.rules = new RowRules(parts);
    this.constraints = new CallerConstraints(parts, this.rules);
  }

  async find(className: unknown, options: FindOptions = {}): Promise<ParseRow[]> {
    return (await this.page(className, options)).rows;
  }

  async page(className: unknown, options: FindOptions = {}): Promise<RowPage> {
    const access = this.enter(className, 'find');
    const canonical = !readOptOut(options.applyCanonicalFilter);
    const { where: admitted, asked } = await this.constraints.composed(access, options.where, {
      canonical,
      operation: 'find',
    });
    const { limit, skip } = readPage(options);
    const { where, order } = walked(admitted, options, access);
    const keys = parseKeys(options.keys, access);
    const includes = await this.includes(options.include, access, keys);
    const scans = options.expectsScan ?? Object.keys(asked).length === 0;
    if (!scans) await refuseCollectionScan(this.parts, access.className, where);
    const request = { keys: includes.keys, include: includes.plans };
    const rows = await this.atStore((operation) =>
      this.parts.reader.find(
        { className: access.className, where, limit, skip, order, ...widened(request) },
        operation,
      ),
    );
    return {
      rows: shownRows(rows, this.parts, includes.guard).map(narrowing(request)),
      ...(includes.truncated && { truncatedIncludeFields: includes.truncated }),
    };
  }

  async count(
    className: unknown,
    options: Pick<FindOptions, 'where' | 'applyCanonicalFilter'> = {},
  ): Promise<number> {
    const access = this.enter(className, 'count');
    const canonical = !readOptOut(options.applyCanonicalFilter);
    const { where } = await this.constraints.composed(access, options.where, {
      canonical,
      operation: 'count',
    });
    return this.atStore((operation) =>
      this.parts.reader.count({ className: access.className, where }, operation),
    );
  }

  async get(
    className: unknown,
    objectId: unknown,
    options: Pick<FindOptions, 'include'> = {},
  ): Promise<RowPage> {
    if (objectId === undefined || objectId === null || objectId === '') {
      throw new Refused(refusals.invalidArgument('missing required argument: object_id'));
    }
    const access = this.enter(className, 'get');
    const page = await this.byIds(access, [objectId], options);
    if (page.rows.length === 0)
      throw new Refused(refusals.objectNotFound(access.className, objectId as string));
    return page;
  }

  async getMany(
    className: unknown,
    objectIds: readonly string[],
    options: Pick<FindOptions, 'include'> = {},
  ): Promise<RowPage> {
    return this.byIds(this.enter(className, 'get'), objectIds, options);
  }

  async samples(className: unknown, limit: number): Promise<ParseRow[]> {
    const { readable } = this.enter(className, 'find');
    // Which rows are the newest is part of a column that permissions may hide.
    const order = (readable?.has('createdAt') ?? true) ? '-createdAt' : undefined;
    return this.find(className, { limit, order, expectsScan: true });
  }

  async aggregate(
    className: unknown,
    pipeline: unknown,
    options: AggregateOptions = {},
  ): Promise<AggregateResult> {
    const access = this.enter(className, 'find');
    const { stages, scanned, autoLimited } = await this.aggregation.govern(access, pipeline, options);
    if (scanned && !options.expectsScan) await refuseCollectionScan(this.parts, access.className, scanned);
    const rows = await this.atStore((operation) =>
      this.parts.reader.aggregate(
        {
          className: access.className,
          pipeline: stages,
          ...(options.rewriteLookups !== undefined && { rewriteLookups: options.rewriteLookups }),
        },
        operation,
      ),
    );
    return { rows: shownRows(rows, this.parts), route: this.parts.reader.pipelineRoute, autoLimited };
  }

  async checkAggregate(
    className: unknown,
    pipeline: unknown,
    options: Pick<AggregateOptions, 'where'> = {},
  ): Promise<void> {
    this.aggregation.check(this.enter(className, 'find'), pipeline, options);
  }

  async explain(className: unknown, options: Pick<FindOptions, 'where'> = {}): Promise<QueryPlan> {
    const access = this.enter(className, 'find');
    return explain(this.parts, this.constraints, access, options.where);
  }

  async admit(className: unknown): Promise<GovernedClass> {
    const access = this.enter(className, 'find');
    this.rules.tenant(access.className);
    return this.described(access);
  }

  async classes(): Promise<readonly GovernedClass[]> {
    const { scope } = this.parts;
    return scope.schemas
      .classNames()
      .filter((name) => scope.isListed(name))
      .flatMap((name) => shownClass(scope.access(name), this.parts) ?? []);
  }

  async describe(className: unknown): Promise<GovernedClass> {
    return this.described(this.enter(className, 'describe'));
  }

  async indexes(className: unknown): Promise<readonly IndexSchema[]> {
    return toldIndexes(this.enter(className, 'describe'), this.parts);
  }

  private described(access: ClassAccess): GovernedClass {
    const known = shownClass(access, this.parts);
    if (!known) throw new Refused(refusals.unknownClass(access.className, []));
    return known;
  }

  private enter(className: unknown, operation: ReadOperation | 'describe'): ClassAccess {
    return enterClass(this.parts, className, operation);
  }

  private get aggregation(): GovernedAggregation {
    return new GovernedAggregation(this.parts, this.rules, this.constraints);
  }

  private includes(include: unknown, access: ClassAccess, keys: readonly string[] | undefined) {
    return new IncludeResolver(this.parts.agent, this.parts.scope, this.rules).resolve(include, access, keys);
  }

  /** A row of another tenant refuses the whole call, on purpose not as "not found"; a row outside a filter is absent. */
  private async byIds(
    access: ClassAccess,
    ids: readonly unknown[],
    options: Pick<FindOptions, 'include'>,
  ): Promise<RowPage> {
    for (const id of ids) {
      if (!isObjectId(id))
        this.refuse(
          refusals.invalidArgument('object ids are letters, digits, _ and -, at most 32 characters'),
        );
    }
    if (ids.length === 0) return { rows: [] };
    const { reader } = this.parts;
    const { tenant, where: limits } = await this.rules.predicate(access.className, {
      canonical: false,
      operation: 'get',
      byId: true,
    });
    const includes = await this.includes(options.include, access, parseKeys(undefined, access));
    const where = allOf({ objectId: ids.length === 1 ? ids[0] : { $in: ids } }, limits);
    const projected = includes.keys && tenant ? [...includes.keys, tenant.field] : includes.keys;
    const rows = await this.atStore((operation) =>
      reader.find(
        {
          className: access.className,
          where,
          limit: ids.length,
          include: includes.plans,
          ...(projected && { keys: projected }),
        },
        operation,
      ),
    );
    if (tenant) {
      for (const row of rows) this.refuse(foreignRow(tenant, row, access.className));
      if (!mayShow(access, tenant.field)) for (const row of rows) delete row[tenant.field];
    }
    return {
      rows: shownRows(rows, this.parts, includes.guard),
      ...(includes.truncated && { truncatedIncludeFields: includes.truncated }),
    };
  }

  private atStore<T>(work: (operation: OperationContext) => Promise<T>): Promise<T> {
    const { operation } = this.parts;
    return atStore(operation, () => work(operation));
  }

  private refuse(refusal: Refusal | null): void {
    if (refusal) throw new Refused(refusal);
  }
}
