import type { AggregateOptions, FindOptions, GovernedRecords } from '../governed-records.js';
import { OpenedOnce } from './opened-once.js';

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
