import type { Tier } from '#core';
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
  TextRequest,
  TextSearchRequest,
  WriteOptions,
} from '../governed-access.js';

/** Opens governed access at first use and keeps it for the call. */
class DeferredAccess<Access> {
  private opened: Access | Promise<Access> | undefined;

  constructor(private readonly open: () => Access | Promise<Access>) {}

  /** Calls a method of the opened access. A rejection that a tool does not await does not end the process. */
  protected through<Result>(use: (access: Access) => Promise<Result>): Promise<Result> {
    const access = (this.opened ??= opened(this.open));
    const result = access instanceof Promise ? access.then(use) : use(access);
    // Node ends the process at an unhandled rejection, so any agent that may call such a tool could end it.
    result.catch(nothing);
    return result;
  }
}

/** An access that cannot be opened rejects where it is used. */
function opened<Access>(open: () => Access | Promise<Access>): Access | Promise<Access> {
  try {
    return open();
  } catch (error) {
    return Promise.reject(error as Error);
  }
}

const nothing = (): void => undefined;

export class DeferredRecords extends DeferredAccess<GovernedRecords> implements GovernedRecords {
  find(className: unknown, options?: FindOptions) {
    return this.through((records) => records.find(className, options));
  }

  page(className: unknown, options?: FindOptions, text?: TextRequest) {
    return this.through((records) => records.page(className, options, text));
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

export class DeferredWrites extends DeferredAccess<GovernedWrites> implements GovernedWrites {
  create(className: unknown, fields: unknown, options?: WriteOptions) {
    return this.through((access) => access.create(className, fields, options));
  }

  update(className: unknown, objectId: unknown, fields: unknown, options?: WriteOptions) {
    return this.through((access) => access.update(className, objectId, fields, options));
  }

  delete(className: unknown, objectId: unknown, options?: WriteOptions) {
    return this.through((access) => access.delete(className, objectId, options));
  }

  judge(write: ProposedWrite) {
    return this.through((access) => access.judge(write));
  }
}

export class DeferredSearch extends DeferredAccess<GovernedSearch> implements GovernedSearch {
  text(className: unknown, request: TextSearchRequest) {
    return this.through((access) => access.text(className, request));
  }

  autocomplete(className: unknown, request: AutocompleteRequest) {
    return this.through((access) => access.autocomplete(className, request));
  }

  facets(className: unknown, request: FacetRequest) {
    return this.through((access) => access.facets(className, request));
  }

  likeness(className: unknown) {
    return this.through((access) => access.likeness(className));
  }
}

export class DeferredClassWrites extends DeferredAccess<GovernedClassWrites> implements GovernedClassWrites {
  createClass(className: unknown, fields?: unknown) {
    return this.through((access) => access.createClass(className, fields));
  }

  deleteClass(className: unknown) {
    return this.through((access) => access.deleteClass(className));
  }
}

export class DeferredMethods
  extends DeferredAccess<Omit<GovernedMethods, 'writes'>>
  implements GovernedMethods
{
  constructor(
    open: () => Promise<Omit<GovernedMethods, 'writes'>>,
    private readonly openWrites: () => GovernedWrites,
  ) {
    super(open);
  }

  enter(className: unknown) {
    return this.through((access) => access.enter(className));
  }

  checkId(className: string, objectId: string) {
    return this.through((access) => access.checkId(className, objectId));
  }

  permit(className: string, permission: Tier, type: 'instance' | 'class') {
    return this.through((access) => access.permit(className, permission, type));
  }

  writes(): GovernedWrites {
    return this.openWrites();
  }

  present(result: unknown) {
    return this.through((access) => access.present(result));
  }
}
