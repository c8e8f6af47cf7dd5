import type { Tier } from '#agent';
import type {
  AggregateOptions,
  AutocompleteRequest,
  FacetRequest,
  FindOptions,
  GovernedClassWrites,
  GovernedMethods,
  GovernedRecords,
  GovernedSearch,
  GovernedWrites,
  ProposedWrite,
  TextSearchRequest,
  WriteOptions,
} from '../governed-access.js';

/** Opens a governed door at first use and keeps it for the call. */
class OpenedOnce<Door> {
  private opened: Promise<Door> | undefined;

  constructor(private readonly open: () => Promise<Door>) {}

  /** What the opened door answers. A refusal that a tool forgot to wait for ends nothing; whoever waits is refused. */
  protected through<Answer>(use: (door: Door) => Promise<Answer>): Promise<Answer> {
    const answer = (this.opened ??= this.open()).then(use);
    // Node ends the process for a rejection that nobody handles: any agent that may call such a tool could do that.
    answer.catch(() => undefined);
    return answer;
  }
}

export class DeferredRecords extends OpenedOnce<GovernedRecords> implements GovernedRecords {
  find(className: unknown, options?: FindOptions) {
    return this.through((records) => records.find(className, options));
  }

  page(className: unknown, options?: FindOptions) {
    return this.through((records) => records.page(className, options));
  }

  count(className: unknown, options?: Pick<FindOptions, 'where' | 'applyCanonicalFilter'>) {
    return this.through((records) => records.count(className, options));
  }

  get(className: unknown, objectId: unknown, options?: Pick<FindOptions, 'keys' | 'include'>) {
    return this.through((records) => records.get(className, objectId, options));
  }

  getMany(className: unknown, objectIds: readonly string[], options?: Pick<FindOptions, 'keys' | 'include'>) {
    return this.through((records) => records.getMany(className, objectIds, options));
  }

  samples(className: unknown, limit: number) {
    return this.through((records) => records.samples(className, limit));
  }

  aggregate(className: unknown, pipeline: unknown, options?: AggregateOptions) {
    return this.through((records) => records.aggregate(className, pipeline, options));
  }

  checkAggregate(className: unknown, pipeline: unknown, options?: Pick<AggregateOptions, 'where'>) {
    return this.through((records) => records.checkAggregate(className, pipeline, options));
  }

  explain(className: unknown, options?: Pick<FindOptions, 'where'>) {
    return this.through((records) => records.explain(className, options));
  }

  admit(className: unknown) {
    return this.through((records) => records.admit(className));
  }

  classes() {
    return this.through((records) => records.classes());
  }

  describe(className: unknown) {
    return this.through((records) => records.describe(className));
  }

  indexes(className: unknown) {
    return this.through((records) => records.indexes(className));
  }
}

export class DeferredWrites extends OpenedOnce<GovernedWrites> implements GovernedWrites {
  create(className: unknown, fields: unknown, options?: WriteOptions) {
    return this.through((door) => door.create(className, fields, options));
  }

  update(className: unknown, objectId: unknown, fields: unknown, options?: WriteOptions) {
    return this.through((door) => door.update(className, objectId, fields, options));
  }

  delete(className: unknown, objectId: unknown, options?: WriteOptions) {
    return this.through((door) => door.delete(className, objectId, options));
  }

  judge(write: ProposedWrite) {
    return this.through((door) => door.judge(write));
  }
}

export class DeferredSearch extends OpenedOnce<GovernedSearch> implements GovernedSearch {
  text(className: unknown, request: TextSearchRequest) {
    return this.through((door) => door.text(className, request));
  }

  autocomplete(className: unknown, request: AutocompleteRequest) {
    return this.through((door) => door.autocomplete(className, request));
  }

  facets(className: unknown, request: FacetRequest) {
    return this.through((door) => door.facets(className, request));
  }

  likeness(className: unknown) {
    return this.through((door) => door.likeness(className));
  }
}

export class DeferredClassWrites extends OpenedOnce<GovernedClassWrites> implements GovernedClassWrites {
  createClass(className: unknown, fields?: unknown) {
    return this.through((door) => door.createClass(className, fields));
  }

  deleteClass(className: unknown) {
    return this.through((door) => door.deleteClass(className));
  }
}

export class DeferredMethods extends OpenedOnce<Omit<GovernedMethods, 'writes'>> implements GovernedMethods {
  constructor(
    open: () => Promise<Omit<GovernedMethods, 'writes'>>,
    private readonly openWrites: () => GovernedWrites,
  ) {
    super(open);
  }

  enter(className: unknown) {
    return this.through((door) => door.enter(className));
  }

  permit(className: string, permission: Tier, type: 'instance' | 'class') {
    return this.through((door) => door.permit(className, permission, type));
  }

  writes(): GovernedWrites {
    return this.openWrites();
  }

  present(result: unknown) {
    return this.through((door) => door.present(result));
  }
}
