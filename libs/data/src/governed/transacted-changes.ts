import { Refused } from '#core';
import type { Where } from '#policy';
import { type BoundStores, digestImage, type RowImage } from '../changes/row-transactions.js';
import type { StoreErrorCode } from '../record-store.js';
import {
  type AppliedChange,
  type ChangeConflict,
  describeRefusal,
  type HeldChange,
  isRestoredRow,
  ROW_CHANGED,
  ROW_EXISTS,
  toWrite,
} from './held-change.js';
import { type GovernedWriteCall, WriteRules } from './write-rules.js';
import { StoredRows } from './stored-rows.js';
import { atWriter } from './store-refusals.js';

/** Changes that were not applied, because some of them are in conflict with what there is now. */
export class ConflictingChanges extends Error {
  override readonly name = 'ConflictingChanges';
  constructor(readonly conflicts: readonly ChangeConflict[]) {
    super('the changes are in conflict with what there is now');
  }
}

/** A change that may be made. */
interface JudgedChange {
  readonly change: HeldChange;
  /** The row as it is now, which others may have changed where the change does not touch it; null: there is none. */
  readonly now: RowImage | null;
  /** @throws Refused */
  readonly make: () => Promise<MadeChange>;
}

interface MadeChange {
  /** The row. */
  readonly id: string;
  /** The row as the change left it; null: it is gone. @throws Refused where it is not the caller's */
  readonly readLeft: () => Promise<RowImage | null>;
}

/** The changes of one set within their transaction: all are judged by the rows before it, then made in their order. */
export class TransactedChanges {
  private readonly rows: StoredRows;
  private readonly rules: WriteRules;

  /** @param call whose stores are those of the transaction */
  constructor(
    private readonly call: GovernedWriteCall,
    private readonly stores: BoundStores,
  ) {
    this.rows = new StoredRows(call, stores.images);
    this.rules = new WriteRules(call, this.rows);
  }

  /** @throws ConflictingChanges with all that are in conflict */
  async apply(changes: readonly HeldChange[]): Promise<readonly AppliedChange[]> {
    const judged = assertNone(
      await Promise.all(changes.map((change) => this.take(change, () => this.judge(change)))),
    );
    const made: (JudgedChange & MadeChange)[] = [];
    const conflicts: ChangeConflict[] = [];
    for (const one of judged) {
      const outcome = await this.take(one.change, async () => ({ ...one, ...(await one.make()) }));
      if (isConflict(outcome)) conflicts.push(outcome);
      else made.push(outcome);
      // The database takes nothing more in this transaction.
      if (this.stores.failure !== null) break;
    }
    assertNone(conflicts);
    return assertNone(
      await Promise.all(
        made.map(({ change, now, id, readLeft }) =>
          this.take(change, async () => {
            const { operation, className, fields } = change;
            const left = await readLeft();
            const after = left && digestImage(left);
            return { operation, className, objectId: id, fields, before: now, after };
          }),
        ),
      ),
    );
  }

  private async judge(change: HeldChange): Promise<JudgedChange> {
    const { operation, className, objectId } = change;
    const id = objectId ?? '';
    if (isRestoredRow(change)) {
      const access = this.rules.admit(className, 'create');
      if ((await this.rows.read(className, id)) !== null) throw new Conflict(ROW_EXISTS);
      return {
        change,
        now: null,
        make: () => this.restore({ ...change, where: {} }, null, () => this.rules.readOwnImage(access, id)),
      };
    }
    const planned = await this.rules.plan(toWrite(change), false);
    const now = planned.image;
    if (operation !== 'create' && !(await this.rows.isAsItWas(change, now, planned)))
      throw new Conflict(ROW_CHANGED);
    if (change.restored !== undefined)
      return {
        change,
        now,
        make: () =>
          this.restore({ ...change, where: planned.where }, now, () =>
            operation === 'delete' ? Promise.resolve(null) : this.rows.read(className, id),
          ),
      };
    return {
      change,
      now,
      make: async () => {
        const made = await this.rules.carryOut(planned, objectId ?? undefined);
        const { after } = this.stores.written;
        return { id: made, readLeft: () => Promise.resolve(after) };
      },
    };
  }

  private async restore(
    { className, objectId, where, restored = null }: HeldChange & { readonly where: Where },
    now: RowImage | null,
    readLeft: MadeChange['readLeft'],
  ): Promise<MadeChange> {
    const { operation } = this.call;
    const id = objectId ?? '';
    await atWriter(operation, () =>
      this.stores.images.replace({ className, objectId: id, where }, now, restored, operation),
    );
    return { id, readLeft };
  }

  /** What the work gives, or why the change cannot be applied. */
  private async take<T>(change: HeldChange, work: () => Promise<T>): Promise<T | ChangeConflict> {
    const { operation, className, objectId } = change;
    try {
      return await work();
    } catch (error) {
      const conflict = { operation, className, objectId };
      if (error instanceof Conflict) return { ...conflict, reason: error.message };
      const { failure } = this.stores;
      const isOfTheRow = failure === null || OF_A_ROW.has(failure);
      if (error instanceof Refused && isOfTheRow && !PASSING.has(error.refusal.code))
        return { ...conflict, reason: describeRefusal(change, error.refusal) };
      throw error;
    }
  }
}

/** The row is not what it was. */
class Conflict extends Error {}

const isConflict = (outcome: object): outcome is ChangeConflict => 'reason' in outcome;

/** @throws ConflictingChanges with all that are among the outcomes */
function assertNone<T extends object>(outcomes: readonly (T | ChangeConflict)[]): readonly T[] {
  const conflicts = outcomes.filter(isConflict);
  if (conflicts.length > 0) throw new ConflictingChanges(conflicts);
  return outcomes as readonly T[];
}

/** Errors of the database that another row or its rules cause. */
const OF_A_ROW: ReadonlySet<StoreErrorCode> = new Set(['duplicate', 'rejected', 'invalid_query']);

/** Refusals that say nothing of the row. */
const PASSING: ReadonlySet<string> = new Set(['timeout', 'cancelled', 'rate_limited', 'internal_error']);
