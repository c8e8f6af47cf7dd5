import { randomUUID } from 'node:crypto';
import { refuse } from '#core';
import { mergeFields, withoutDeleted } from '../changes/merge-fields.js';
import { type BoundStores, type RowTransaction, type RowTransactions } from '../changes/row-transactions.js';
import type { JudgedWrite, ProposedWrite } from '../governed-access.js';
import { ChangeViews } from './change-views.js';
import { StoredRows } from './stored-rows.js';
import { type AppliedChange, type HeldChange } from './held-change.js';
import { type GovernedWriteCall, WriteRules, type PlannedWrite } from './write-rules.js';
import { atStore, atWriter } from './store-refusals.js';
import { TransactedChanges } from './transacted-changes.js';

/**
 * Governed access to sets of changes, for one call. A change is judged by the rules of any write (`WriteRules`) when it is proposed,
 * when it is shown and when it is applied.
 */
export class ParleyChanges {
  /** Changes as the caller may see them. */
  readonly views: ChangeViews;
  private readonly rules: WriteRules;
  private readonly rows: StoredRows;

  /** @param bind opens the access to the stores of a transaction */
  constructor(
    private readonly call: GovernedWriteCall,
    private readonly transactions: RowTransactions,
    private readonly bind: (stores: BoundStores) => Promise<GovernedWriteCall>,
  ) {
    this.rows = new StoredRows(call, transactions.images);
    this.rules = new WriteRules(call, this.rows);
    this.views = new ChangeViews(call, this.rules, this.rows);
  }

  /** What the database of a class lacks for applying a set of its rows; null: nothing. */
  findObstacle(className: string): Promise<string | null> {
    const { operation } = this.call;
    return atStore(operation, () => this.transactions.findObstacle(className, operation));
  }

  /**
   * Judges a write as it would be made, and changes nothing.
   * @param findHeld the change of the row that the set has already. @param classes those of the other rows of the set
   * @returns the change of the row from now on; null: the set need not change it any more
   * @throws Refused as the write itself would be, and for a class of another database than those of the set
   */
  async propose(
    write: ProposedWrite,
    findHeld: (className: string, objectId: string) => HeldChange | null,
    classes: Iterable<string> = [],
  ): Promise<{ readonly change: HeldChange | null; readonly judged: JudgedWrite }> {
    const { operation } = write;
    if (operation === 'create') {
      const planned = await this.rules.plan(write);
      this.assertOneDatabase([...classes, planned.className], PROPOSED_APART);
      const objectId = await this.chooseId(planned.className);
      return proposed(planned, { objectId, fields: planned.given, before: null });
    }
    const className = await this.rules.nameClass(write.className, operation);
    this.assertOneDatabase([...classes, className], PROPOSED_APART);
    const held = findHeld(className, String(write.objectId));
    if (held?.operation === 'delete') throw refuse.objectNotFound(className, String(write.objectId));
    if (held?.operation === 'create') return this.proposeOfNew(write, held);
    if (!held || operation === 'delete') {
      const planned = await this.rules.plan(write);
      const objectId = planned.objectId ?? '';
      const before = held ? held.before : planned.image;
      if (before === null) throw refuse.objectNotFound(className, objectId);
      return proposed(planned, { objectId, fields: planned.given, before });
    }
    // The later write alone first: what is wrong with it is said of it.
    const { given } = await this.rules.plan(write);
    const merged = mergeFields(held.fields ?? {}, given ?? {});
    const planned = await this.rules.plan({ ...write, fields: merged });
    return proposed(planned, { objectId: held.objectId, fields: planned.given, before: held.before });
  }

  /** A set is applied in one transaction, and none reaches two databases. @throws Refused */
  private assertOneDatabase(classNames: readonly string[], advice: string): void {
    const { classes } = this.call.scope.policy;
    const findDatabase = (className: string) => classes.get(className)?.database ?? null;
    const [first = ''] = classNames;
    const other = classNames.find((className) => findDatabase(className) !== findDatabase(first));
    if (other !== undefined) throw refuse.crossDatabaseChanges(first, other, advice);
  }

  /** A further write of a row that the set creates. */
  private async proposeOfNew(
    write: Exclude<ProposedWrite, { operation: 'create' }>,
    held: HeldChange,
  ): Promise<{ readonly change: HeldChange | null; readonly judged: JudgedWrite }> {
    const { className, objectId } = held;
    if (write.operation === 'delete')
      return { change: null, judged: { className, objectId, before: null, fields: null } };
    const given = await this.rules.readFields(className, write.fields);
    const fields = withoutDeleted(mergeFields(held.fields ?? {}, given));
    const planned = await this.rules.plan({ operation: 'create', className, fields });
    return proposed(planned, { objectId, fields: planned.given, before: null });
  }

  /**
   * Applies all changes in one transaction, or none. Each is judged again, and its row must be as it was.
   * @param settle stores in the same transaction that the changes are applied
   * @throws ConflictingChanges when some cannot be applied. @throws Refused for errors of the database
   */
  async apply(
    changes: readonly HeldChange[],
    settle: (applied: readonly AppliedChange[], transaction: RowTransaction) => Promise<void>,
  ): Promise<readonly AppliedChange[]> {
    const { operation } = this.call;
    return atStore(operation, () =>
      this.transactions.run(changes[0]?.className ?? '', operation, async (stores) => {
        const applied = await new TransactedChanges(await this.bind(stores), stores).apply(changes);
        await settle(applied, stores.transaction);
        return applied;
      }),
    );
  }

  /**
   * The changes that take applied ones back: see `StoredRows.invert`. They are judged when they are applied, as any others.
   * @throws Refused for rows of several databases
   */
  async invert(applied: readonly AppliedChange[]): ReturnType<StoredRows['invert']> {
    this.assertOneDatabase(
      applied.map(({ className }) => className),
      UNDONE_APART,
    );
    return this.rows.invert(applied);
  }

  /** A row that a later write of the set can name. */
  private async chooseId(className: string): Promise<string | null> {
    const { ids, operation } = this.call;
    if (!ids.takesObjectIds) return null;
    return atWriter(operation, () => ids.idFor(className, newIdText(), operation));
  }
}

const PROPOSED_APART = 'Submit or discard the open change set first, then propose this write in the next one';
const UNDONE_APART = 'Take the change sets back one by one';

/** Within the length that Parse accepts for an id. */
const newIdText = (): string => randomUUID().replaceAll('-', '').slice(0, 24);

function proposed(
  { operation, className, before: shown, given }: PlannedWrite,
  held: Pick<HeldChange, 'objectId' | 'fields' | 'before'>,
): { readonly change: HeldChange; readonly judged: JudgedWrite } {
  const { objectId } = held;
  return {
    change: { operation, className, ...held },
    // Without what Parley adds: values of filters are the operator's.
    judged: { className, objectId, before: shown, fields: given },
  };
}
