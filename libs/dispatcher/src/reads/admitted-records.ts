import type { AggregateOptions, FindOptions, GovernedRecords } from '#data';

/** A governed door that is opened when the first row is asked for. What only tells of classes is open to begin with. */
export class AdmittedRecords implements GovernedRecords {
  /** @param admitted asked before every read of rows; throws when there shall be none */
  constructor(
    private readonly door: GovernedRecords,
    private readonly admitted: () => Promise<void>,
  ) {}

  async find(className: unknown, options?: FindOptions) {
    return (await this.opened()).find(className, options);
  }

  async page(className: unknown, options?: FindOptions) {
    return (await this.opened()).page(className, options);
  }

  async count(className: unknown, options?: Pick<FindOptions, 'where' | 'applyCanonicalFilter'>) {
    return (await this.opened()).count(className, options);
  }

  async get(className: unknown, objectId: unknown, options?: Pick<FindOptions, 'keys' | 'include'>) {
    return (await this.opened()).get(className, objectId, options);
  }

  async getMany(
    className: unknown,
    objectIds: readonly string[],
    options?: Pick<FindOptions, 'keys' | 'include'>,
  ) {
    return (await this.opened()).getMany(className, objectIds, options);
  }

  async samples(className: unknown, limit: number) {
    return (await this.opened()).samples(className, limit);
  }

  async aggregate(className: unknown, pipeline: unknown, options?: AggregateOptions) {
    return (await this.opened()).aggregate(className, pipeline, options);
  }

  async explain(className: unknown, options?: Pick<FindOptions, 'where'>) {
    return (await this.opened()).explain(className, options);
  }

  checkAggregate(className: unknown, pipeline: unknown, options?: Pick<AggregateOptions, 'where'>) {
    return this.door.checkAggregate(className, pipeline, options);
  }

  admit(className: unknown) {
    return this.door.admit(className);
  }

  indexes(...asked: Parameters<GovernedRecords['indexes']>) {
    return this.door.indexes(...asked);
  }

  classes() {
    return this.door.classes();
  }

  describe(className: unknown) {
    return this.door.describe(className);
  }

  private async opened(): Promise<GovernedRecords> {
    await this.admitted();
    return this.door;
  }
}
