import type { AggregateOptions, FindOptions, GovernedRecords } from '../governed-records.js';

/** Opens the governed door at first use and keeps it for the call. */
export class DeferredRecords implements GovernedRecords {
  private opened: Promise<GovernedRecords> | undefined;

  constructor(private readonly open: () => Promise<GovernedRecords>) {}

  private get records(): Promise<GovernedRecords> {
    return (this.opened ??= this.open());
  }

  async find(className: unknown, options?: FindOptions) {
    return (await this.records).find(className, options);
  }

  async page(className: unknown, options?: FindOptions) {
    return (await this.records).page(className, options);
  }

  async count(className: unknown, options?: Pick<FindOptions, 'where' | 'applyCanonicalFilter'>) {
    return (await this.records).count(className, options);
  }

  async get(className: unknown, objectId: unknown, options?: Pick<FindOptions, 'include'>) {
    return (await this.records).get(className, objectId, options);
  }

  async getMany(className: unknown, objectIds: readonly string[], options?: Pick<FindOptions, 'include'>) {
    return (await this.records).getMany(className, objectIds, options);
  }

  async samples(className: unknown, limit: number) {
    return (await this.records).samples(className, limit);
  }

  async aggregate(className: unknown, pipeline: unknown, options?: AggregateOptions) {
    return (await this.records).aggregate(className, pipeline, options);
  }

  async checkAggregate(className: unknown, pipeline: unknown, options?: Pick<AggregateOptions, 'where'>) {
    return (await this.records).checkAggregate(className, pipeline, options);
  }

  async explain(className: unknown, options?: Pick<FindOptions, 'where'>) {
    return (await this.records).explain(className, options);
  }

  async admit(className: unknown) {
    return (await this.records).admit(className);
  }

  async classes() {
    return (await this.records).classes();
  }

  async describe(className: unknown) {
    return (await this.records).describe(className);
  }

  async indexes(className: unknown) {
    return (await this.records).indexes(className);
  }
}
