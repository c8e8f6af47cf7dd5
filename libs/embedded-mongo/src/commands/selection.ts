import { compileSort } from '../bson/sort-order.js';
import type { Collation } from '../bson/collation.js';
import type { Document } from '../bson/document.js';
import { parsePath } from '../bson/path.js';
import { readPath } from '../aggregate/expression.js';
import type { ScanCounts } from '../planner/index-scan.js';
import { plan, type Planned } from '../planner/plan.js';
import { compileFilter, type Filter } from '../query/filter.js';
import { requiresGeoIndex } from '../query/geo.js';
import type { CommandContext } from '../server/command.js';
import { Reader } from '../server/cursors.js';
import { collect, PAUSE, type Step } from '../server/drain.js';
import { sortInTurns } from '../server/sort-in-turns.js';
import { Collection } from '../storage/collection.js';
import type { StoredDocument } from '../storage/stored-document.js';
import { queryContext, requireGeoIndex, type CommandQueryContext } from './query-context.js';
import { rowsFrom, toRows, type Rows } from '../server/rows.js';

/** Which documents of a collection are wanted, and in what order. */
export interface SelectionSpec {
  readonly filter: Document;
  readonly sort?: Document | undefined;
  readonly skip?: number | undefined;
  /** 0 for all. */
  readonly limit?: number | undefined;
  readonly hint?: unknown;
  readonly collation?: Collation | undefined;
  readonly variables?: Document | undefined;
}

/** A planned query over one collection. */
export class Selection {
  readonly counts: ScanCounts = { keys: 0, documents: 0 };
  readonly planned: Planned;
  readonly filter: Filter;
  readonly queryContext: CommandQueryContext;
  /** What is searched: nothing, where the collection is missing. */
  readonly collection: Collection;
  private readonly distance: ((document: Document) => number) | undefined;

  /** Errors: those of the filter, the sort and the hint; 291 without a geo index. */
  constructor(
    private readonly ctx: CommandContext,
    collection: Collection | undefined,
    readonly spec: SelectionSpec,
    readonly reader: Reader = new Reader(ctx.operation),
  ) {
    const { filter, sort, collation, variables } = spec;
    this.collection = collection ?? new Collection({ db: ctx.db, coll: '' });
    // A malformed query is refused also where there is nothing to search; a missing index is not missed there.
    const hint = collection ? spec.hint : undefined;
    const options = { collation, variables, filter, searchable: !collection };
    this.queryContext = queryContext(ctx, reader, collection, options);
    this.filter = compileFilter(filter, this.queryContext);
    const near = requiresGeoIndex(filter);
    if (near) {
      requireGeoIndex(collection, near);
      const path = parsePath(near.path);
      this.distance = (document) => near.distance(readPath(document, path, 0));
    }
    this.planned = plan(this.collection, { filter, sort: near && !sort ? undefined : sort, hint, collation });
  }

  /** True when results are collected and put in order before the first one is given. */
  get sorts(): boolean {
    const { sort } = this.spec;
    const wanted = sort !== undefined && Object.keys(sort).length > 0;
    return wanted ? !this.planned.winner.sorted : this.distance !== undefined;
  }

  /** Candidates that pass the filter, in the order of the plan. */
  *matches(): Generator<Step<StoredDocument>> {
    const { winner } = this.planned;
    for (const { index } of winner.branches ?? [winner]) if (index) index.accesses.ops += 1;
    for (const step of winner.run(this.counts)) {
      this.reader.tick();
      if (step === PAUSE || this.filter.matches(step.document)) yield step;
      else if (this.reader.turnIsOver) yield PAUSE;
    }
  }

  /** The result: sorted, skipped and limited. */
  async rows(): Promise<Rows<StoredDocument>> {
    const { skip = 0, limit = 0 } = this.spec;
    if (!this.sorts) return rowsFrom(this.matches(), skip, limit);
    const found = await collect(this.ctx.operation, this.matches());
    const ordered = await this.inOrder(found);
    return toRows(ordered.slice(skip, limit > 0 ? skip + limit : undefined));
  }

  private async inOrder(found: StoredDocument[]): Promise<StoredDocument[]> {
    const { sort, collation } = this.spec;
    if (sort === undefined || Object.keys(sort).length === 0) {
      const { distance } = this;
      if (!distance) return found;
      const measured = found.map((stored) => ({ stored, at: distance(stored.document) }));
      const nearest = await sortInTurns(this.ctx.operation, measured, (a, b) => a.at - b.at);
      return nearest.map(({ stored }) => stored);
    }
    const order = compileSort(sort, collation, this.queryContext.textScore);
    const keyed = found.map((stored) => ({ stored, keys: order.listKeys(stored.document) }));
    const { operation } = this.ctx;
    const sorted = await sortInTurns(operation, keyed, (a, b) => order.compareKeys(a.keys, b.keys));
    return sorted.map(({ stored }) => stored);
  }
}
