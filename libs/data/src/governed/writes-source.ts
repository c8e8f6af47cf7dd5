import type { CallContext } from '#agent';
import type { GovernedMethods } from '../governed-methods.js';
import type { GovernedClassWrites, GovernedWrites } from '../governed-writes.js';
import { MeteredWriter } from '../metering/metered-writer.js';
import { NoWriteKeys, type WriteKeys } from '../write-keys.js';
import type { RecordWriter } from '../record-store.js';
import type { SchemaWriter } from '../schema-writer.js';
import { DeferredClassWrites, DeferredMethods, DeferredWrites } from './deferred-doors.js';
import type { CallBudget } from './operation.js';
import { ParleyClassWrites } from './parley-class-writes.js';
import { ParleyMethods } from './parley-methods.js';
import { ParleyWrites } from './parley-writes.js';
import type { GovernedRecordsSource } from './records-source.js';

/** Makes the governed doors that change something; holds the only references to the writers. */
export class GovernedWritesSource {
  constructor(
    private readonly records: GovernedRecordsSource,
    private readonly writer: RecordWriter,
    private readonly schemaWriter: SchemaWriter,
    private readonly keys: WriteKeys = new NoWriteKeys(),
  ) {}

  rows(context: CallContext, budget: CallBudget): GovernedWrites {
    return new DeferredWrites(async () => {
      const parts = await this.records.open(context, budget);
      const writer = new MeteredWriter(this.writer.forCall(parts.call), parts.metering);
      return new ParleyWrites({ ...parts, writer, keys: this.keys });
    });
  }

  classes(context: CallContext, budget: CallBudget): GovernedClassWrites {
    const { schemaWriter } = this;
    return new DeferredClassWrites(
      async () => new ParleyClassWrites({ ...(await this.records.open(context, budget)), schemaWriter }),
    );
  }

  methods(context: CallContext, budget: CallBudget): GovernedMethods {
    return new DeferredMethods(
      async () => new ParleyMethods(await this.records.open(context, budget)),
      () => this.rows(context, budget),
    );
  }
}
