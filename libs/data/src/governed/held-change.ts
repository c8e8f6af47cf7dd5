import type { Refusal } from '#core';
import type { RowImage } from '../changes/row-transactions.js';
import type { ProposedWrite } from '../governed-access.js';
import type { ParseRow } from '../record-store.js';

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

/** A change that was applied, with the row that it left. */
export type AppliedChange = HeldChange & { readonly objectId: string; readonly after: string | null };

/** Why a change cannot be applied now. It tells no more than reading the row would. */
export interface ChangeConflict {
  readonly operation: ProposedWrite['operation'];
  readonly className: string;
  readonly objectId: string | null;
  readonly reason: string;
}

export const ROW_CHANGED = 'somebody has changed this row since';
export const ROW_EXISTS = 'there is a row of this id again';

/**
 * Why a refused change cannot be applied. The columns of a row that is put back are not named: another one may have written them.
 */
export function describeRefusal({ restored }: HeldChange, { gate, message }: Refusal): string {
  return restored !== undefined && gate === 'fields' ? 'it holds columns that you may not write' : message;
}

export type RestoredRow = HeldChange & { readonly operation: 'create'; readonly restored: RowImage };

/** A row that was deleted and is put back: its fields are not the caller's. */
export function isRestoredRow(change: HeldChange): change is RestoredRow {
  return change.operation === 'create' && typeof change.restored === 'string';
}

export function toWrite({ operation, className, objectId, fields }: HeldChange): ProposedWrite {
  if (operation === 'create') return { operation, className, fields };
  return operation === 'update'
    ? { operation, className, objectId, fields }
    : { operation, className, objectId };
}
