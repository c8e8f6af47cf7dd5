import { Refused } from '#core';
import { admitsRow, type ClassAccess, isMasked, isOwnRow, mergeFilters, redact } from '#policy';
import type { RowImage } from '../changes/row-transactions.js';
import type { JudgedWrite, ProposedWrite } from '../governed-access.js';
import type { ParseRow } from '../record-store.js';
import type { StoredRows } from './stored-rows.js';
import { enterClass } from './governed-call.js';
import { presentRow } from './shown-rows.js';
import {
  describeRefusal,
  type HeldChange,
  isRestoredRow,
  type RestoredRow,
  ROW_CHANGED,
  ROW_EXISTS,
  toWrite,
} from './held-change.js';
import type { GovernedWriteCall, WriteRules } from './write-rules.js';

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

/** Changes as they are shown: nothing of a row, or of a column, that the caller may not read. */
export class ChangeViews {
  constructor(
    private readonly call: GovernedWriteCall,
    private readonly rules: WriteRules,
    private readonly rows: StoredRows,
  ) {}

  /** Every change as the caller may see it now, in their order. */
  async review(changes: readonly HeldChange[]): Promise<readonly ReviewedChange[]> {
    return Promise.all(changes.map((change) => this.reviewOne(change)));
  }

  private async reviewOne(change: HeldChange): Promise<ReviewedChange> {
    const { operation, className, objectId } = change;
    const shown = { className, objectId, before: null, fields: null };
    try {
      if (isRestoredRow(change)) return await this.reviewRestored(change);
      const planned = await this.rules.plan(toWrite(change));
      const { access, before, given } = planned;
      const isOwn = change.restored === undefined;
      const fields = isOwn ? given : before && given && (await this.showFormer(access, change, given));
      const judged = { className, objectId, before, fields };
      if (operation === 'create') return { operation, judged, conflict: null };
      const isAlike = await this.rows.isAsItWas(change, planned.image, planned);
      return { operation, judged, conflict: isAlike ? null : ROW_CHANGED };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { operation, judged: shown, conflict: describeRefusal(change, error.refusal) };
    }
  }

  /** Former values are not the caller's own, unlike those that it gives: null where it may not read the row that is put back. */
  private async showFormer(
    access: ClassAccess,
    { restored }: HeldChange,
    fields: ParseRow,
  ): Promise<ParseRow | null> {
    if (typeof restored !== 'string' || (await this.present(access, restored)) === null) return null;
    return this.presentFields(access, fields).shown;
  }

  private async reviewRestored(change: RestoredRow): Promise<ReviewedChange> {
    const { operation, className, objectId, restored } = change;
    const access = this.rules.admit(className, 'create');
    const fields = await this.present(access, restored);
    const now = await this.rows.read(className, objectId ?? '');
    const judged = { className, objectId, before: null, fields };
    return { operation, judged, conflict: now === null ? null : ROW_EXISTS };
  }

  /**
   * Every change as an agent may see it, whether or not it may write and whoever proposed it: the values that the change writes, and
   * those that they replace: of an applied one as they were, otherwise as they are now. What this agent may not read is left out and
   * named, without its value.
   */
  async view(changes: readonly HeldChange[]): Promise<readonly ViewedChange[]> {
    return Promise.all(changes.map((change) => this.viewOne(change)));
  }

  private async viewOne(change: HeldChange): Promise<ViewedChange> {
    const { operation, className, objectId, fields } = change;
    try {
      const access = enterClass(this.call, className, 'get');
      const known = { operation, isReadable: true, className: access.className, objectId };
      if (isRestoredRow(change)) {
        const after = await this.present(access, change.restored);
        return after ? { ...known, before: null, after, withheld: [] } : hide(operation);
      }
      const isNew = operation === 'create' && change.after === undefined;
      const former = isNew ? null : await this.readFormer(access, change);
      if (isNew ? !(await this.mayReadNew(access, fields ?? {})) : former === null) return hide(operation);
      if (typeof change.restored === 'string' && (await this.present(access, change.restored)) === null)
        return hide(operation);
      const { shown, withheld } = this.presentFields(access, fields ?? {});
      const row = operation === 'create' ? null : former;
      const before = row && fields ? pickNamed(row, Object.keys(shown)) : row;
      return { ...known, before, after: fields && shown, withheld };
    } catch (error) {
      if (error instanceof Refused) return hide(operation);
      throw error;
    }
  }

  /**
   * The row before a change, as this agent may read it: as it is now, and of an applied change as it was. Null for a row that its rules
   * keep from it, as it is now or as it was.
   */
  private async readFormer(access: ClassAccess, change: HeldChange): Promise<ParseRow | null> {
    const { className, before, after } = change;
    const objectId = change.objectId ?? '';
    const now = await this.rules.readBefore(className, objectId);
    if (after === undefined || before === null) return now;
    if (now === null && (await this.rows.read(className, objectId)) !== null) return null;
    return this.present(access, before);
  }

  /** An image of a row as the caller could read it; null where its rules do not show that it may. */
  private async present(access: ClassAccess, image: RowImage): Promise<ParseRow | null> {
    const row = await this.rows.toRow(access.className, image);
    const { where } = await this.rules.rows.predicate(access.className, {
      canonical: false,
      operation: 'get',
    });
    return admitsRow(where, row, access.schema) ? presentRow({ ...row }, access, this.call) : null;
  }

  /** Whether the caller could read a new row with these values in its tenant; what they do not show counts as no. */
  private async mayReadNew({ className, schema }: ClassAccess, fields: ParseRow): Promise<boolean> {
    const tenant = this.rules.rows.tenant(className);
    // A row without the column gets the tenant of its caller, who is of this one: who is of another one is not asked.
    if (tenant && tenant.field in fields && !isOwnRow(tenant, fields)) return false;
    const rights = this.call.scope.rights.rows(className, 'get');
    return admitsRow(mergeFilters(rights, await this.rules.rows.filter(className)), fields, schema);
  }

  /** Written values, without those of fields that the caller may not read in clear. */
  private presentFields(
    access: ClassAccess,
    fields: ParseRow,
  ): { readonly shown: ParseRow; readonly withheld: readonly string[] } {
    const names = Object.keys(fields);
    const isReadable = (name: string) => (access.readable?.has(name) ?? true) && !isMasked(access, name);
    const readable = names.filter(isReadable);
    const kept = Object.fromEntries(readable.map((name) => [name, fields[name]]));
    const { withholding } = this.call.scope;
    return {
      shown: redact(kept, withholding, withholding.rowType(access.className)) as ParseRow,
      withheld: names.filter((name) => !isReadable(name)),
    };
  }
}

/** What is said of a change whose row an agent may not read. */
const hide = (operation: ProposedWrite['operation']): ViewedChange => ({
  operation,
  isReadable: false,
  className: null,
  objectId: null,
  before: null,
  after: null,
  withheld: [],
});

const pickNamed = (row: ParseRow, names: readonly string[]): ParseRow =>
  Object.fromEntries(names.map((name) => [name, row[name] ?? null]));
