import type { Agent } from '#core';
import type { Caller, OperationContext, ParseRow, StoreOperation, Writes } from '../record-store.js';
import { StoreError, WriteStore } from '../record-store.js';
import type { AppliedChange } from '../governed/held-change.js';

import {
  type BoundStores,
  digestImage,
  type RowImage,
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

  /** The row before a write is recorded, so it is read anyway. */
  override get readsBefore(): boolean {
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
    const { images, writes, transaction } = stores;
    const asked = operation as StoreOperation<Writes>;
    const { kind, className } = asked;
    let before: RowImage | null = null;
    if (kind !== 'create') {
      const { objectId, where, admits } = asked;
      before = (await images.find(className, [objectId], where, context)).get(objectId) ?? null;
      const isAdmitted =
        before !== null && (admits?.(await images.toRow(className, before, context)) ?? true);
      if (!isAdmitted) return (kind === 'update' ? null : false) as Writes[K]['answer'];
    }
    const answer = await writes.run(operation, context, caller);
    // No row was what the write requires it to be.
    if (answer === null || answer === false) return answer;
    const objectId = kind === 'create' ? String((answer as ParseRow)['objectId']) : asked.objectId;
    const after = kind === 'delete' ? null : stores.left;
    await this.recorder.record(
      {
        operation: kind,
        className,
        objectId,
        fields: kind === 'delete' ? null : asked.fields,
        before,
        after: after && digestImage(after),
      },
      caller.agent,
      transaction,
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
