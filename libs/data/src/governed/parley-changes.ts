import { randomUUID } from 'node:crypto';
import { Refused, refusals } from '#core';
import { digestImage } from '../changes/image-digest.js';
import { mergeFields, withoutDeleted } from '../changes/merge-fields.js';
import type { BoundStores, RowImage, RowTransactions, RowTransaction } from '../changes/row-transactions.js';
import type { ClassAccess } from '#policy';
import type { JudgedWrite, ProposedWrite } from '../governed-access.js';
import type { ParseRow, StoreErrorCode } from '../record-store.js';
import { enterClass } from './governed-call.js';
import { ParleyRecords } from './parley-records.js';
import { type GovernedWriteCall, ParleyWrites, type PlannedWrite } from './parley-writes.js';
import { atStore, atWriter } from './store-refusals.js';

/** What a set keeps of one row: the write that it takes the row to, and the row as it was. */
export interface HeldChange {
  readonly operation: ProposedWrite['operation'];
  readonly className: string;
  /** Null: a new row gets its id when it is stored. */
  readonly objectId: string | null;
  /** Values and `{ __op }` by wire name, as the caller gave them; null where there are none. */
  readonly fields: ParseRow | null;
  /** The row as it was when the change was proposed; null: there was none. */
  readonly before: RowImage | null;
  /** Digest of the row after the change was applied; null: there was none. Absent: it was not applied. */
  readonly after?: string | null;
  /** The row as it is put back; null: it is deleted. Absent: the write decides. */
  readonly restored?: RowImage | null;
  /** With `restored`: digest of the row as it must be now; null: there must be none. */
  readonly found?: string | null;
}

/** Why a change cannot be applied now. It tells no more than reading the row would. */
export interface ChangeConflict {
  readonly operation: ProposedWrite['operation'];
  readonly className: string;
  readonly objectId: string | null;
  readonly reason: string;
}

/** Changes that were not applied, because some of them are in conflict with what there is now. */
export class ConflictingChanges extends Error {
  override readonly name = 'ConflictingChanges';
  constructor(readonly conflicts: readonly ChangeConflict[]) {
    super('the changes are in conflict with what there is now');
  }
}

/** A change as the caller may see it now. */
export interface ReviewedChange {
  readonly judged: JudgedWrite;
  readonly operation: ProposedWrite['operation'];
  /** Why it could not be applied now; null: it could. */
  readonly conflict: string | null;
}

/** A change as an agent may see it that did not propose it. */
export interface ViewedChange {
  readonly operation: ProposedWrite['operation'];
  /** False: this agent may not read the row, and is shown nothing of it. */
  readonly isReadable: boolean;
  readonly className: string | null;
  readonly objectId: string | null;
  readonly before: ParseRow | null;
  readonly after: ParseRow | null;
  /** Names of fields that the change writes and this agent may not read. */
  readonly withheld: readonly string[];
}

/** A change that was applied, with the row that it left. */
export type AppliedChange = HeldChange & { readonly objectId: string; readonly after: string | null };

const ROW_CHANGED = 'somebody has changed this row since';
const ROW_EXISTS = 'there is a row of this id again';

/**
 * Governed access to sets of changes, for one call. A change is judged by the rules of any write (`ParleyWrites`) when it is proposed,
 * when it is shown and when it is applied.
 */
export class ParleyChanges {
  private readonly writes: ParleyWrites;

  /** @param bind opens the access to the stores of a transaction */
  constructor(
    private readonly call: GovernedWriteCall,
    private readonly transactions: RowTransactions,
    private readonly bind: (stores: BoundStores) => Promise<GovernedWriteCall>,
  ) {
    this.writes = new ParleyWrites(call);
  }

  /** What the database lacks for applying a set; null: nothing. */
  findObstacle(): Promise<string | null> {
    const { operation } = this.call;
    return atStore(operation, () => this.transactions.findObstacle(operation));
  }

  /**
   * Judges a write as it would be made, and changes nothing.
   * @param findHeld the change of the row that the set has already
   * @returns the change of the row from now on; null: the set need not change it any more
   * @throws Refused as the write itself would be
   */
  async propose(
    write: ProposedWrite,
    findHeld: (className: string, objectId: string) => HeldChange | null,
  ): Promise<{ readonly change: HeldChange | null; readonly judged: JudgedWrite }> {
    const { operation } = write;
    if (operation === 'create') {
      const planned = await this.writes.plan(write);
      const objectId = await this.chooseId(planned.className);
      return proposed(planned, { objectId, fields: planned.given, before: null });
    }
    const className = await this.writes.nameClass(write.className, operation);
    const held = findHeld(className, String(write.objectId));
    if (held?.operation === 'delete')
      throw new Refused(refusals.objectNotFound(className, String(write.objectId)));
    if (held?.operation === 'create') return this.proposeOfNew(write, held);
    if (!held || operation === 'delete') {
      const planned = await this.writes.plan(write);
      const objectId = planned.objectId ?? '';
      const before = held ? held.before : await this.readImage(className, objectId);
      if (before === null) throw new Refused(refusals.objectNotFound(className, objectId));
      return proposed(planned, { objectId, fields: planned.given, before });
    }
    // The later write alone first: what is wrong with it is said of it.
    const { given } = await this.writes.plan(write);
    const merged = mergeFields(held.fields ?? {}, given ?? {});
    const planned = await this.writes.plan({ ...write, fields: merged });
    return proposed(planned, { objectId: held.objectId, fields: planned.given, before: held.before });
  }

  /** A further write of a row that the set creates. */
  private async proposeOfNew(
    write: Exclude<ProposedWrite, { operation: 'create' }>,
    held: HeldChange,
  ): Promise<{ readonly change: HeldChange | null; readonly judged: JudgedWrite }> {
    const { className, objectId } = held;
    if (write.operation === 'delete')
      return { change: null, judged: { className, objectId, before: null, fields: null } };
    const given = await this.writes.readFields(className, write.fields);
    const fields = withoutDeleted(mergeFields(held.fields ?? {}, given));
    const planned = await this.writes.plan({ operation: 'create', className, fields });
    return proposed(planned, { objectId, fields: planned.given, before: null });
  }

  /** Every change as the caller may see it now, in their order. */
  async review(changes: readonly HeldChange[]): Promise<readonly ReviewedChange[]> {
    const reviewed: ReviewedChange[] = [];
    for (const change of changes) reviewed.push(await this.reviewOne(change));
    return reviewed;
  }

  private async reviewOne(change: HeldChange): Promise<ReviewedChange> {
    const { operation, className, objectId } = change;
    const shown = { className, objectId, before: null, fields: null };
    try {
      if (isRestoredRow(change)) return await this.reviewRestored(change);
      const planned = await this.writes.plan(toWrite(change));
      const judged = { className, objectId, before: planned.before, fields: planned.given };
      if (operation === 'create') return { operation, judged, conflict: null };
      const now = await this.readImage(className, objectId ?? '');
      const isAlike = await this.isAsItWas(change, now, planned);
      return { operation, judged, conflict: isAlike ? null : ROW_CHANGED };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { operation, judged: shown, conflict: error.refusal.message };
    }
  }

  private async reviewRestored(change: RestoredRow): Promise<ReviewedChange> {
    const { operation, className, objectId, restored } = change;
    const access = this.writes.admitRestored(className);
    const row = await this.toRow(className, restored);
    const fields = await this.writes.presentImage(access, row);
    const now = await this.readImage(className, objectId ?? '');
    const judged = { className, objectId, before: null, fields };
    return { operation, judged, conflict: now === null ? null : ROW_EXISTS };
  }

  /**
   * Every change as another agent than its own may see it, whether or not it may write: the values that the change writes, and the
   * row as it is now. What this agent may not read is left out and named, without its value.
   */
  async view(changes: readonly HeldChange[]): Promise<readonly ViewedChange[]> {
    const viewed: ViewedChange[] = [];
    for (const change of changes) viewed.push(await this.viewOne(change));
    return viewed;
  }

  private async viewOne(change: HeldChange): Promise<ViewedChange> {
    const { operation, className, objectId, fields } = change;
    const hidden = {
      operation,
      isReadable: false,
      className: null,
      objectId: null,
      before: null,
      after: null,
    };
    try {
      const access = enterClass(this.call, className, 'get');
      const known = { operation, isReadable: true, className: access.className, objectId };
      if (isRestoredRow(change)) {
        const row = await this.toRow(className, change.restored);
        const after = await this.writes.presentImage(access, row);
        return after ? { ...known, before: null, after, withheld: [] } : { ...hidden, withheld: [] };
      }
      const [row = null] =
        operation === 'create'
          ? []
          : (await new ParleyRecords(this.call).getMany(className, [objectId ?? ''])).rows;
      if (operation !== 'create' && row === null) return { ...hidden, withheld: [] };
      const { shown, withheld } = this.writes.presentFields(access, fields ?? {});
      const before = row && fields ? pickNamed(row, Object.keys(shown)) : row;
      return { ...known, before, after: fields && shown, withheld };
    } catch (error) {
      if (error instanceof Refused) return { ...hidden, withheld: [] };
      throw error;
    }
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
      this.transactions.run(operation, async (stores) => {
        const writes = new ParleyWrites(await this.bind(stores));
        const conflicts: ChangeConflict[] = [];
        const applied: AppliedChange[] = [];
        for (const change of changes) {
          const outcome = await this.applyOne(change, writes, stores);
          if ('reason' in outcome) conflicts.push(outcome);
          else applied.push(outcome);
          // The database takes nothing more in this transaction.
          if (stores.failure !== null) break;
        }
        if (conflicts.length > 0) throw new ConflictingChanges(conflicts);
        await settle(applied, stores.transaction);
        return applied;
      }),
    );
  }

  private async applyOne(
    change: HeldChange,
    writes: ParleyWrites,
    stores: BoundStores,
  ): Promise<AppliedChange | ChangeConflict> {
    const { images } = stores;
    const { operation, className, objectId } = change;
    const conflict = (reason: string) => ({ operation, className, objectId, reason });
    try {
      if (isRestoredRow(change)) {
        const access = writes.admitRestored(className);
        if (!(await this.restore(change, null, images))) return conflict(ROW_EXISTS);
        await writes.assertOwn(access, objectId ?? '');
        return await this.asApplied(change, null, objectId ?? '', images);
      }
      const planned = await writes.plan(toWrite(change));
      const now = operation === 'create' ? null : await this.readImage(className, objectId ?? '', images);
      if (operation !== 'create' && !(await this.isAsItWas(change, now, planned)))
        return conflict(ROW_CHANGED);
      if (change.restored !== undefined) {
        if (!(await this.restore(change, now, images))) return conflict(ROW_CHANGED);
        return await this.asApplied(change, now, objectId ?? '', images);
      }
      const id = await writes.carryOut(planned, objectId ?? undefined);
      // The row as it is now is what is put back: others may have changed what the change does not touch.
      return await this.asApplied(change, now, id, images);
    } catch (error) {
      const { failure } = stores;
      const isOfTheRow = failure === null || OF_A_ROW.has(failure);
      if (error instanceof Refused && isOfTheRow && !PASSING.has(error.refusal.code))
        return conflict(error.refusal.message);
      throw error;
    }
  }

  private restore(
    { className, objectId, restored = null }: HeldChange,
    now: RowImage | null,
    images: BoundStores['images'],
  ): Promise<boolean> {
    const { operation } = this.call;
    const row = { className, objectId: objectId ?? '' };
    return atWriter(operation, () => images.replace(row, now, restored, operation));
  }

  /** @param before the row as the change found it, which may have changed where the change does not touch it */
  private async asApplied(
    { operation, className, fields }: HeldChange,
    before: RowImage | null,
    objectId: string,
    images: BoundStores['images'],
  ): Promise<AppliedChange> {
    const now = await this.readImage(className, objectId, images);
    return { operation, className, objectId, fields, before, after: now && digestImage(now) };
  }

  /**
   * The changes that take applied ones back, the last one first. What they lead to is the row as it was, byte for byte.
   * @returns `changes` for rows that nobody else has changed since, and the others as conflicts
   */
  async invert(
    applied: readonly AppliedChange[],
  ): Promise<{ readonly changes: readonly HeldChange[]; readonly conflicts: readonly ChangeConflict[] }> {
    const changes: HeldChange[] = [];
    const conflicts: ChangeConflict[] = [];
    for (const change of applied.toReversed()) {
      const { className, objectId, before } = change;
      const operation = inverse[change.operation];
      const now = await this.readImage(className, objectId);
      if ((now && digestImage(now)) !== change.after) {
        conflicts.push({
          operation,
          className,
          objectId,
          reason: now === null || change.after ? ROW_CHANGED : ROW_EXISTS,
        });
        continue;
      }
      const fields = operation === 'update' ? await this.formerFields(change) : null;
      changes.push({
        operation,
        className,
        objectId,
        fields,
        before: null,
        found: change.after,
        restored: before,
      });
    }
    return { changes, conflicts };
  }

  /** The values that an update replaced. */
  private async formerFields({ className, fields, before }: AppliedChange): Promise<ParseRow> {
    const row = before === null ? {} : await this.toRow(className, before);
    return Object.fromEntries(
      Object.keys(fields ?? {}).map((name) => [name, row[name] ?? { __op: 'Delete' }]),
    );
  }

  /**
   * Whether a row is what it was: its time stamp, and the columns that the change writes. Of a row that is deleted those that the
   * caller may read, and of one that is put back every byte.
   */
  private async isAsItWas(
    { className, operation, before, fields, restored, found }: HeldChange,
    now: RowImage | null,
    { access }: Pick<PlannedWrite, 'access'>,
  ): Promise<boolean> {
    if (restored !== undefined) return (now && digestImage(now)) === found;
    if (now === null || before === null) return now === before;
    const touched = operation === 'delete' ? listReadable(access) : Object.keys(fields ?? {});
    return atStore(this.call.operation, () =>
      this.transactions.images.areAlike(className, before, now, touched),
    );
  }

  private readImage(
    className: string,
    objectId: string,
    images = this.transactions.images,
  ): Promise<RowImage | null> {
    const { operation } = this.call;
    return atStore(operation, () => images.read(className, objectId, operation));
  }

  private toRow(className: string, image: RowImage): Promise<ParseRow> {
    return atStore(this.call.operation, () => this.transactions.images.toRow(className, image));
  }

  /** A row that a later write of the set can name. */
  private async chooseId(className: string): Promise<string | null> {
    const { ids, operation } = this.call;
    if (!ids.takesObjectIds) return null;
    return atWriter(operation, () => ids.idFor(className, newIdText()));
  }
}

/** Within the length that Parse accepts for an id. */
const newIdText = (): string => randomUUID().replaceAll('-', '').slice(0, 24);

const pickNamed = (row: ParseRow, names: readonly string[]): ParseRow =>
  Object.fromEntries(names.map((name) => [name, row[name] ?? null]));

/** The columns of a row that its reader may compare; undefined: they are not known, and all of them count. */
const listReadable = ({ readable, schema }: ClassAccess): readonly string[] | undefined =>
  readable ? [...readable] : schema && [...schema.fields.keys()];

const inverse = { create: 'delete', update: 'update', delete: 'create' } as const;

type RestoredRow = HeldChange & { readonly operation: 'create'; readonly restored: RowImage };

/** A row that was deleted and is put back: its fields are not the caller's. */
function isRestoredRow(change: HeldChange): change is RestoredRow {
  return change.operation === 'create' && typeof change.restored === 'string';
}

function toWrite({ operation, className, objectId, fields }: HeldChange): ProposedWrite {
  if (operation === 'create') return { operation, className, fields };
  return operation === 'update'
    ? { operation, className, objectId, fields }
    : { operation, className, objectId };
}

/** Errors of the database that another row or its rules cause. */
const OF_A_ROW: ReadonlySet<StoreErrorCode> = new Set(['duplicate', 'rejected', 'invalid_query']);

/** Refusals that say nothing of the row. */
const PASSING: ReadonlySet<string> = new Set(['timeout', 'cancelled', 'rate_limited', 'internal_error']);

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
