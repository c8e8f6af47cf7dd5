import { Refused, refuse } from '#core';
import {
  ALWAYS_KEEP,
  type ClassAccess,
  type ClassOperation,
  excludeLists,
  idForm,
  isIdFor,
  isOwnRow,
  isRefusal,
  mergeFilters,
  planWrite,
  rawWriteGate,
  suggestNames,
  type TenantBinding,
  type Where,
  type WritePlan,
} from '#policy';
import type { RowImage } from '../changes/row-transactions.js';
import type { JudgedWrite, ProposedWrite } from '../governed-access.js';
import type { Run } from '../metering/metered-stores.js';
import { type ParseRow, ROW_REFUSED, StoreError, type Writes, type WriteStore } from '../record-store.js';
import type { WriteKeys } from '../write-keys.js';
import {
  assertClassPermits,
  type ClassGate,
  enterClass,
  type GovernedCall,
  pointerGate,
  tracePassed,
} from './governed-call.js';
import { presentRow } from './shown-rows.js';
import { ParleyRecords } from './parley-records.js';
import { everyIndex } from './query-plan.js';
import { RowRules } from './row-rules.js';
import { atWriter } from './store-refusals.js';
import type { StoredRows } from './stored-rows.js';

export interface GovernedWriteCall extends GovernedCall {
  /** @throws StoreError */
  readonly write: Run<Writes>;
  /** How rows get their ids. */
  readonly ids: Pick<WriteStore, 'takesObjectIds' | 'idFor' | 'judgesRows'>;
  /** Null: a write with a key is refused, as it is while keys are unavailable. */
  readonly keys: WriteKeys | null;
}

/** A judged write, and what the store is asked for. It never leaves governed access. */
export interface PlannedWrite extends JudgedWrite {
  readonly operation: ProposedWrite['operation'];
  readonly access: ClassAccess;
  /** The fields as the caller gave them. */
  readonly given: ParseRow | null;
  /** What the row has to meet. */
  readonly where: Where;
  /** The row as it is stored; null: there is none yet, or it was read without its bytes. */
  readonly image: RowImage | null;
}

/** A row that is the caller's. */
interface OwnRow {
  /** What makes it the caller's. */
  readonly where: Where;
  /** Null: there is none. */
  readonly row: ParseRow | null;
  /** The row as it is stored; null: there is none, or it was read without its bytes. */
  readonly image: RowImage | null;
}

/** The gates of a class for a write, before its fields are read. @throws Refused */
export function admitWrite(call: ClassGate, className: unknown, permission: ClassOperation): ClassAccess {
  const { scope, agent, trace } = call;
  const access = scope.enter(agent, className, null);
  if (isRefusal(access)) throw new Refused(access);
  const closed = scope.refuseReadOnly(access.className) ?? rawWriteGate(agent, access);
  if (closed) throw new Refused(closed);
  tracePassed(trace, 'class', access);
  assertClassPermits(call, access.className, permission);
  trace?.notePassed('class_permissions', access.className);
  return access;
}

/** What holds for every write of one call, and the ways to send what they permit. */
export class WriteRules {
  readonly rows: RowRules;

  /** @param stored rows with their bytes. Absent: they are read as any others */
  constructor(
    private readonly call: GovernedWriteCall,
    private readonly stored?: StoredRows,
  ) {
    this.rows = new RowRules(call);
  }

  /**
   * Runs every check of a write: `carryOut` makes it.
   * @param isShown false: to nobody, and the row is not read for that. @throws Refused
   */
  async plan(write: ProposedWrite, isShown = true): Promise<PlannedWrite> {
    const { operation } = write;
    const access = this.enter(write.className, operation);
    const { className } = access;
    if (operation === 'create') {
      const { fields, given } = await this.planFields(access, write.fields, operation);
      const unread = { objectId: null, before: null, where: {}, image: null };
      return { operation, access, className, fields, given, ...unread };
    }
    if (operation === 'delete') this.rows.tenant(className);
    const objectId = readId(write.objectId, access);
    const plan = operation === 'update' ? await this.planFields(access, write.fields, operation) : null;
    const { where, row, image } = await this.ownRow(access, objectId, operation);
    const before = isShown ? await this.readBefore(className, objectId, image === null ? null : row) : null;
    const { fields = null, given = null } = plan ?? {};
    return { operation, access, className, objectId, before, fields, given, where, image };
  }

  /**
   * The row as the caller may read it; null: it may not, or there is none.
   * @param own the row, where it was read as one that the caller may change. Without rights of its own it may read it then, too
   */
  async readBefore(
    className: string,
    objectId: string,
    own: ParseRow | null = null,
  ): Promise<ParseRow | null> {
    const { scope } = this.call;
    if (!this.stored || !scope.rights.unlimited)
      return (await readAsCaller(this.call, className, objectId))[0] ?? null;
    try {
      const access = enterClass(this.call, className, 'get');
      const row = own ?? (await this.findOwn(access, objectId, 'get')).row;
      return row && presentRow({ ...row }, access, this.call);
    } catch (error) {
      if (error instanceof Refused) return null;
      throw error;
    }
  }

  /** The class of a write, by its canonical name. @throws Refused as the write would be */
  async nameClass(className: unknown, operation: ProposedWrite['operation']): Promise<string> {
    return this.enter(className, operation).className;
  }

  /** The fields of a change of a row, by wire name. @throws Refused */
  async readFields(className: string, fields: unknown): Promise<ParseRow> {
    return (await this.planFields(this.enter(className, 'update'), fields, 'update')).given;
  }

  /** Makes a write that was planned in the same transaction. @param id of a new row. @throws Refused */
  async carryOut(planned: PlannedWrite, id?: string): Promise<string> {
    const { operation, access, className, objectId, fields, where } = planned;
    const { write } = this.call;
    if (operation === 'create') {
      const { objectId: made } = await this.runWrite(access, () =>
        write({ kind: 'create', className, fields: fields ?? {}, objectId: id }),
      );
      return String(made);
    }
    const changed = objectId ?? '';
    const done =
      operation === 'delete'
        ? await this.deleteWhere(access, changed, where)
        : await this.runWrite(access, () =>
            write({ kind: 'update', className, objectId: changed, fields: fields ?? {}, where }),
          );
    if (!done) throw new Refused(await this.rows.noSuchRow(className, [changed]));
    return changed;
  }

  /** The gates of the class, and that the caller's tenant is known. @throws Refused */
  admit(className: unknown, permission: ClassOperation): ClassAccess {
    const access = this.enter(className, permission);
    this.rows.tenant(access.className);
    return access;
  }

  /** The row that was put back as it was. @throws Refused for one that the caller could not change */
  async readOwnImage(access: ClassAccess, objectId: string): Promise<RowImage | null> {
    return (await this.ownRow(access, objectId, 'update')).image;
  }

  /** The gates of the class. @throws Refused */
  enter(className: unknown, permission: ClassOperation): ClassAccess {
    return admitWrite(this.call, className, permission);
  }

  /** @throws Refused */
  async planFields(access: ClassAccess, fields: unknown, operation: 'create' | 'update'): Promise<WritePlan> {
    const { scope, agent } = this.call;
    const plan = planWrite(fields, {
      agent,
      access,
      policy: scope.classPolicy(access.className),
      operation,
      tenant: this.rows.tenant(access.className),
      filter: operation === 'create' ? await this.rows.filter(access.className) : undefined,
      indexes: access.masks ? await everyIndex(access, this.call) : [],
      findSchema: (className) => scope.schemas.get(className),
      judgeClass: pointerGate(this.call),
    });
    if (plan.added.size > 0) assertClassPermits(this.call, access.className, 'addField');
    for (const name of plan.added.keys()) this.noteAdded(name, access);
    return plan;
  }

  /** A name with a slip would be a column of its own. The operator knows of those that the policy names. */
  private noteAdded(name: string, { className, readable, schema }: ClassAccess): void {
    if (readable?.has(name) || this.call.scope.classPolicy(className).properties.has(name)) return;
    const [near] = suggestNames(name, [...(readable ?? schema?.fields.keys() ?? [])]);
    const meant = near === undefined ? '' : `; did you mean '${near}'?`;
    this.call.note?.(`class '${className}' had no field '${name}': the write adds it${meant}`);
  }

  /**
   * The stored row must exist for this agent and belong to its tenant. The verified conditions are also the condition of the
   * write itself: a row that changed its owner in between stays unchanged.
   */
  async ownRow(
    access: ClassAccess,
    objectId: string,
    change: 'update' | 'delete',
  ): Promise<OwnRow & { readonly row: ParseRow }> {
    const { row, ...found } = await this.findOwn(access, objectId, change);
    if (row) return { ...found, row };
    throw new Refused(await this.rows.noSuchRow(access.className, [objectId]));
  }

  /** What makes the row the caller's, for a write that needs nothing of it. Where the write alone decides, it is not read. */
  async admitOwn(access: ClassAccess, objectId: string, operation: 'update' | 'delete'): Promise<Where> {
    const { judgesRows } = this.call.ids;
    const { where } = judgesRows
      ? await this.limit(access.className, operation)
      : await this.ownRow(access, objectId, operation);
    return where;
  }

  /** What makes a row the caller's. Where it is a condition of the write itself, no list of tenants meets it. */
  private async limit(
    className: string,
    operation: 'get' | 'update' | 'delete',
  ): Promise<{ readonly tenant: TenantBinding | null; readonly where: Where }> {
    const { tenant, where } = await this.rows.predicate(className, { canonical: false, operation });
    const isExact = tenant !== null && this.call.ids.takesObjectIds;
    return { tenant, where: isExact ? mergeFilters(where, excludeLists(tenant)) : where };
  }

  private async findOwn(
    { className }: ClassAccess,
    objectId: string,
    operation: 'get' | 'update' | 'delete',
  ): Promise<OwnRow> {
    // A caller may have the right to write a row that it may not read: the constraint contains the row's rights, and the read
    // uses the operator's authority.
    const { tenant, where } = await this.limit(className, operation);
    const { stored } = this;
    let image: RowImage | null = null;
    let row: ParseRow | null = null;
    if (stored) {
      image = await stored.read(className, objectId, where);
      row = image === null ? null : await stored.toRow(className, image);
    } else {
      const named = mergeFilters({ objectId }, where);
      const keys = tenant ? [tenant.field] : ['objectId'];
      [row = null] = await this.call.readAsOperator({
        kind: 'find',
        className,
        where: named,
        limit: 1,
        keys,
      });
    }
    return row && tenant && !isOwnRow(tenant, row)
      ? { where, row: null, image: null }
      : { where, row, image };
  }

  /** A caller with rights of its own may write a row that it may not read: the row is read again under its own rights. */
  async present(row: ParseRow, access: ClassAccess): Promise<ParseRow> {
    const { scope } = this.call;
    if (scope.rights.unlimited) return presentRow(row, access, this.call);
    const id = String(row['objectId']);
    const [readable] = await readAsCaller(this.call, access.className, id);
    return readable ?? Object.fromEntries(ALWAYS_KEEP.map((name) => [name, row[name]]));
  }

  /** A new or changed row. Where another row has its unique value, only a caller that reads every row learns it. */
  runWrite<T>({ className, schema }: ClassAccess, write: () => Promise<T>): Promise<T> {
    const { operation } = this.call;
    return atWriter(operation, async () => {
      try {
        return await write();
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== 'duplicate') throw error;
        if (await this.rows.readsEveryRowOfIndexes(className, schema)) throw error;
        const { cause, store, outcome } = error;
        throw new StoreError('rejected', { cause, store, advice: ROW_REFUSED, ...(outcome && { outcome }) });
      }
    });
  }

  deleteWhere({ className }: ClassAccess, objectId: string, where: Where): Promise<boolean> {
    const { write, operation } = this.call;
    return atWriter(operation, () => write({ kind: 'delete', className, objectId, where }));
  }

  /** The row as the caller can read it now, or only its id. */
  async readShown(access: ClassAccess, id: string): Promise<ParseRow> {
    const [row] = await readAsCaller(this.call, access.className, id);
    return row ?? { objectId: id };
  }
}

async function readAsCaller(call: GovernedCall, className: string, id: string): Promise<ParseRow[]> {
  try {
    return (await new ParleyRecords(call).getMany(className, [id])).rows;
  } catch (error) {
    // The write was applied; a refused read only limits which parts of the row are returned.
    if (error instanceof Refused) return [];
    throw error;
  }
}

/** @throws Refused for text that is no id of the class */
export function readId(objectId: unknown, { schema }: ClassAccess): string {
  if (objectId === undefined || objectId === null || objectId === '')
    throw refuse.invalidArgument('missing required argument: object_id');
  if (isIdFor(schema, objectId)) return objectId;
  throw refuse.invalidArgument(idForm(schema));
}
