import type { Agent } from '#core';
import type { Caller, OperationContext, ParseRow, StoreOperation, Writes } from '../record-store.js';
import { StoreError, WriteStore } from '../record-store.js';
import type { AppliedChange } from '../governed/held-change.js';

import {
  type BoundStores,
  digestImage,
  type RowTransaction,
  type RowTransactions,
} from './row-transactions.js';

/** Keeps what one write changed, so that it can be taken back. */
export abstract class WriteRecorder {
  /** @param transaction of the write: it is applied only if this is stored */
  abstract record(change: AppliedChange, agent: Agent, transaction: RowTransaction): Promise<void>;
}

/** Classes of which it is known what their database lacks. */
const MOST_CLASSES = 10_000;

/**
 * Writes of agents that happen at once, each in one transaction with the row before it. Where there are no transactions, agents write
 * nothing: what they wrote could not be taken back. The operator's own writes are not recorded.
 * @throws StoreError
 */
export class RecordedWrites extends WriteStore {
  /** By class. */
  private readonly obstacles = new Map<string, Promise<string | null>>();

  constructor(
    private readonly store: WriteStore,
    private readonly transactions: RowTransactions,
    private readonly recorder: WriteRecorder,
  ) {
    super();
  }

  override get takesObjectIds(): boolean {
    return this.store.takesObjectIds;
  }

  override get judgesRows(): boolean {
    return true;
  }

  override idFor(className: string, text: string, operation: OperationContext): Promise<string> {
    return this.store.idFor(className, text, operation);
  }

  async run<K extends keyof Writes>(
    operation: StoreOperation<Writes, K>,
    context: OperationContext,
    caller: Caller,
  ): Promise<Writes[K]['answer']> {
    if (caller === 'operator') return this.store.run(operation, context, caller);
    const { className } = operation as StoreOperation<Writes>;
    await this.assertPossible(className, context);
    return this.transactions.run(className, context, (stores) =>
      this.runRecorded(operation, { context, caller, stores }),
    );
  }

  private async runRecorded<K extends keyof Writes>(
    operation: StoreOperation<Writes, K>,
    {
      context,
      caller,
      stores,
    }: {
      readonly context: OperationContext;
      readonly caller: Exclude<Caller, 'operator'>;
      readonly stores: BoundStores;
    },
  ): Promise<Writes[K]['answer']> {
    const asked = operation as StoreOperation<Writes>;
    const { kind, className } = asked;
    const answer = await stores.lastWrite.run(operation, context, caller);
    // No row was what the write requires it to be.
    if (answer === null || answer === false) return answer;
    const { before, after } = stores.written;
    await this.recorder.record(
      {
        operation: kind,
        className,
        objectId: kind === 'create' ? String((answer as ParseRow)['objectId']) : asked.objectId,
        fields: kind === 'delete' ? null : asked.fields,
        before,
        after: after && digestImage(after),
      },
      caller.agent,
      stores.transaction,
    );
    return answer;
  }

  /** What the database is does not change while the process runs. */
  private async assertPossible(className: string, context: OperationContext): Promise<void> {
    const known = this.obstacles.get(className) ?? this.transactions.findObstacle(className, context);
    if (this.obstacles.size < MOST_CLASSES) this.obstacles.set(className, known);
    const obstacle = await known.catch((error: unknown) => {
      this.obstacles.delete(className);
      throw error;
    });
    if (obstacle === null) return;
    throw new StoreError('unsupported', {
      advice: `writes are recorded here (changes.record: all), and cannot be: ${obstacle}`,
    });
  }
}
