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

  async classes() {
    return (await this.records).classes();
  }

  async describe(className: unknown) {
    return (await this.records).describe(className);
  }
}
