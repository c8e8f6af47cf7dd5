import { randomInt } from 'node:crypto';
import { callerKey, orThrow, refusals, Refused } from '#core';
import {
  admitsRow,
  mergeFilters,
  ALWAYS_KEEP,
  type ClassAccess,
  type ClassOperation,
  directWriteGate,
  idForm,
  isIdFor,
  isMasked,
  isOwnRow,
  isRefusal,
  planWrite,
  rawWriteGate,
  redact,
  type Where,
  type WritePlan,
} from '#policy';
import type { GovernedWrites, JudgedWrite, ProposedWrite, WriteOptions } from '../governed-access.js';
import type { Run } from '../metering/metered-stores.js';
import type { RowImage } from '../changes/row-transactions.js';
import { type ParseRow, ROW_REFUSED, StoreError, type Writes, type WriteStore } from '../record-store.js';
import type { WriteKeys, WriteMark } from '../write-keys.js';
import { type KeyedAttempt, KeyedWrites } from './keyed-writes.js';
import { ParleyRecords } from './parley-records.js';
import { everyIndex } from './query-plan.js';
import {
  assertClassPermits,
  type ClassGate,
  enterClass,
  type GovernedCall,
  pointerGate,
  tracePassed,
} from './governed-call.js';
import { RowRules } from './row-rules.js';
import { presentRow } from './shown-rows.js';
import type { StoredRows } from './stored-rows.js';
import { atWriter } from './store-refusals.js';

/** Attempts at a keyed update while other writers change its row. */
const CONTENDED_TRIES = 5;

export interface GovernedWriteCall extends GovernedCall {
  /** @throws StoreError */
  readonly write: Run<Writes>;
  /** How rows get their ids. */
  readonly ids: Pick<WriteStore, 'takesObjectIds' | 'idFor' | 'readsBefore'>;
  readonly keys: WriteKeys;
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

/** Governed writes of one call. The order of the checks is that of docs/contributing/life-of-a-call.md. */
export class ParleyWrites implements GovernedWrites {
  private readonly rules: RowRules;
  private readonly keyed: KeyedWrites;

  /** @param stored rows with their bytes. Absent: they are read as any others */
  constructor(
    private readonly call: GovernedWriteCall,
    private readonly stored?: StoredRows,
  ) {
    this.rules = new RowRules(call);
    this.keyed = new KeyedWrites(call.keys, callerKey(call.agent));
  }

  async create(className: unknown, fields: unknown, options: WriteOptions = {}): Promise<ParseRow> {
    orThrow(directWriteGate(this.call.agent));
    const access = this.enter(className, 'create');
    const plan = await this.planFields(access, fields, 'create');
    const { write, ids, operation } = this.call;
    const { className: name } = access;
    const create = (objectId?: string) =>
      this.runWrite(access, () => write({ kind: 'create', className: name, fields: plan.fields, objectId }));
    const { idempotencyKey } = options;
    if (idempotencyKey === undefined) return this.present(await create(), access);
    return this.keyed.run(idempotencyKey, {
      named: ['create', access.className, fields],
      repeatable: ids.takesObjectIds,
      write: async ({ objectId }) => {
        const id = await atWriter(operation, () => ids.idFor(name, objectId, operation));
        const row = await this.createOnce(access, id, create);
        return { result: row, objectId: String(row['objectId']) };
      },
      again: (id) => this.findMadeBefore(access, id),
    });
  }

  async update(
    className: unknown,
    objectId: unknown,
    fields: unknown,
    options: WriteOptions = {},
  ): Promise<ParseRow> {
    orThrow(directWriteGate(this.call.agent));
    const access = this.enter(className, 'update');
    const id = readId(objectId, access);
    const plan = await this.planFields(access, fields, 'update');
    const { idempotencyKey } = options;
    if (idempotencyKey === undefined) return this.updateObject(access, id, plan);
    return this.keyed.run(idempotencyKey, {
      named: ['update', access.className, id, fields],
      repeatable: false,
      write: async (attempt) => ({ result: await this.updateOnce(access, id, plan, attempt), objectId: id }),
      again: async () => {
        await this.ownRow(access, id, 'update');
        return this.readShown(access, id);
      },
    });
  }

  private async updateObject(access: ClassAccess, id: string, plan: WritePlan): Promise<ParseRow> {
    const own = await this.admitOwn(access, id, 'update');
    const row = await this.runWrite(access, () =>
      this.call.write({
        kind: 'update',
        className: access.className,
        objectId: id,
        fields: plan.fields,
        ...own,
      }),
    );
    if (!row) throw new Refused(await this.rules.noSuchRow(access.className, [id]));
    return this.present(row, access);
  }

  /**
   * Every attempt requires that the row is in the state that its first attempt read, and sets a time stamp that was stored
   * before: at most one of all attempts is applied, and the row shows which. After a change by another writer the row does
   * not show it any more.
   */
  private async updateOnce(
    access: ClassAccess,
    id: string,
    plan: WritePlan,
    attempt: KeyedAttempt,
  ): Promise<ParseRow> {
    const { write, ids } = this.call;
    const { className } = access;
    const { previous } = attempt;
    for (let tries = 0; ids.takesObjectIds && tries < CONTENDED_TRIES; tries += 1) {
      const { where, row: found } = await this.ownRow(access, id, 'update');
      const before = found['updatedAt'];
      if (previous?.after.includes(String(before))) return this.readShown(access, id);
      if (previous && previous.before !== before) throw new Refused(refusals.keyedOutcomeUnknown());
      if (typeof before !== 'string') break;
      const after = stampAfter(before);
      await attempt.markSending(id, { before, after });
      const unchanged = mergeFilters(where, { updatedAt: dateValue(before) });
      const row = await this.runWrite(access, () =>
        write({
          kind: 'update',
          className,
          objectId: id,
          fields: plan.fields,
          where: unchanged,
          updatedAt: after,
        }),
      );
      if (row) return this.present(row, access);
    }
    if (previous) throw new Refused(refusals.keyedOutcomeUnknown());
    await attempt.markSending(id);
    return this.updateObject(access, id, plan);
  }

  async delete(className: unknown, objectId: unknown, options: WriteOptions = {}): Promise<void> {
    orThrow(directWriteGate(this.call.agent));
    const access = this.enter(className, 'delete');
    this.rules.tenant(access.className);
    const id = readId(objectId, access);
    const { idempotencyKey } = options;
    if (idempotencyKey === undefined) return this.deleteObject(access, id);
    return this.keyed.run(idempotencyKey, {
      named: ['delete', access.className, id],
      repeatable: false,
      write: async (attempt) => {
        await this.deleteOnce(access, id, attempt);
        return { result: undefined, objectId: id };
      },
      again: () => Promise.resolve(),
    });
  }

  private async deleteObject(access: ClassAccess, id: string): Promise<void> {
    if (await this.deleteWhere(access, id, await this.admitOwn(access, id, 'delete'))) return;
    throw new Refused(await this.rules.noSuchRow(access.className, [id]));
  }

  /**
   * A row that an attempt was to delete and that no longer exists is deleted: no attempt affects a row created later under
   * its id.
   */
  private async deleteOnce(access: ClassAccess, id: string, attempt: KeyedAttempt): Promise<void> {
    const { takesObjectIds } = this.call.ids;
    const { previous } = attempt;
    if (previous && !(await this.isStored(access, id, previous))) return;
    // Parse Server may still be processing the write, and its triggers would run twice.
    if (previous && !takesObjectIds) throw new Refused(refusals.keyedOutcomeUnknown());
    const { where, row } = await this.ownRow(access, id, 'delete');
    const before = row['createdAt'];
    if (typeof before !== 'string') {
      await attempt.markSending(id);
      return this.deleteObject(access, id);
    }
    await attempt.markSending(id, { before });
    const same = takesObjectIds ? mergeFilters(where, { createdAt: dateValue(before) }) : where;
    if (await this.deleteWhere(access, id, { where: same })) return;
    if (previous && !(await this.isStored(access, id, previous))) return;
    throw new Refused(await this.rules.noSuchRow(access.className, [id]));
  }

  /** A new or changed row. Where another row has its unique value, only a caller that reads every row is told so. */
  private runWrite<T>({ className, schema }: ClassAccess, write: () => Promise<T>): Promise<T> {
    const { operation } = this.call;
    return atWriter(operation, async () => {
      try {
        return await write();
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== 'duplicate') throw error;
        if (await this.rules.readsEveryRowOfIndexes(className, schema)) throw error;
        const { cause, store, outcome } = error;
        throw new StoreError('rejected', { cause, store, advice: ROW_REFUSED, ...(outcome && { outcome }) });
      }
    });
  }

  private deleteWhere(
    access: ClassAccess,
    id: string,
    own: Pick<Writes['delete']['asked'], 'where' | 'admits'>,
  ): Promise<boolean> {
    const { write, operation } = this.call;
    const { className } = access;
    return atWriter(operation, () => write({ kind: 'delete', className, objectId: id, ...own }));
  }

  /**
   * Whether the row that an attempt was to delete exists, for any caller. It existed for this caller when the attempt
   * began.
   */
  private async isStored({ className }: ClassAccess, id: string, { before }: WriteMark): Promise<boolean> {
    const where = { objectId: id, createdAt: dateValue(before) };
    return (await this.call.readAsOperator({ kind: 'count', className, where })) > 0;
  }

  /** The key determines the id: where a row has it, an earlier attempt created it. */
  private async createOnce(
    access: ClassAccess,
    id: string,
    create: (id?: string) => Promise<ParseRow>,
  ): Promise<ParseRow> {
    const { ids, readAsOperator } = this.call;
    if (!ids.takesObjectIds) return this.present(await create(), access);
    try {
      return await this.present(await create(id), access);
    } catch (error) {
      const { className } = access;
      const stored = await readAsOperator({ kind: 'count', className, where: { objectId: id } }).catch(
        () => 0,
      );
      if (stored === 0) throw error;
      return this.findMadeBefore(access, id);
    }
  }

  /**
   * A row that an earlier call created. Whoever creates rows may have no right to read them, but the operator's limits still
   * have to admit the row. @throws Refused
   */
  private async findMadeBefore(access: ClassAccess, objectId: string): Promise<ParseRow> {
    const { className } = access;
    const { declared } = await this.rules.predicate(className, { canonical: false, operation: 'find' });
    const where = mergeFilters({ objectId }, declared);
    if ((await this.call.readAsOperator({ kind: 'count', className, where })) === 0)
      throw new Refused(await this.rules.noSuchRow(className, [objectId]));
    return this.readShown(access, objectId);
  }

  /** The row as the caller can read it now, or only its id. */
  private async readShown(access: ClassAccess, id: string): Promise<ParseRow> {
    const [row] = await readAsCaller(this.call, access.className, id);
    return row ?? { objectId: id };
  }

  async judge(write: ProposedWrite): Promise<JudgedWrite> {
    const { className, objectId, before, fields } = await this.plan(write);
    return { className, objectId, before, fields };
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
    if (operation === 'delete') this.rules.tenant(className);
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
        ? await this.deleteWhere(access, changed, { where })
        : await this.runWrite(access, () =>
            write({ kind: 'update', className, objectId: changed, fields: fields ?? {}, where }),
          );
    if (!done) throw new Refused(await this.rules.noSuchRow(className, [changed]));
    return changed;
  }

  /** Whether the caller could read a new row with these values in its tenant; what they do not show counts as no. */
  async mayReadNew({ className, schema }: ClassAccess, fields: ParseRow): Promise<boolean> {
    const tenant = this.rules.tenant(className);
    // A row without the column gets the tenant of its caller, who is of this one: who is of another one is not asked.
    if (tenant && tenant.field in fields && !isOwnRow(tenant, fields)) return false;
    const rights = this.call.scope.rights.rows(className, 'get');
    return admitsRow(mergeFilters(rights, await this.rules.filter(className)), fields, schema);
  }

  /** The gates of a row that is put back as it was. Whether it is the caller's is asked once it is there (`readOwnImage`). */
  admitRestored(className: string): ClassAccess {
    const access = this.enter(className, 'create');
    this.rules.tenant(access.className);
    return access;
  }

  /** @throws Refused for a row that the caller could not change */
  async readOwnImage(access: ClassAccess, objectId: string): Promise<RowImage | null> {
    return (await this.ownRow(access, objectId, 'update')).image;
  }

  /** An image of a row as the caller could read it; null where its rules do not show that it may. */
  async presentImage(access: ClassAccess, row: ParseRow): Promise<ParseRow | null> {
    const { where } = await this.rules.predicate(access.className, { canonical: false, operation: 'get' });
    return admitsRow(where, row, access.schema) ? presentRow({ ...row }, access, this.call) : null;
  }

  async admit(className: unknown, operation: ProposedWrite['operation']): Promise<void> {
    this.rules.tenant(this.enter(className, operation).className);
  }

  /** Written values, without those of fields that the caller may not read in clear. */
  presentFields(
    access: ClassAccess,
    fields: ParseRow,
  ): { readonly shown: ParseRow; readonly withheld: readonly string[] } {
    const names = Object.keys(fields);
    const isReadable = (name: string) => (access.readable?.has(name) ?? true) && !isMasked(access, name);
    const readable = names.filter(isReadable);
    const kept = Object.fromEntries(readable.map((name) => [name, fields[name]]));
    const { scope } = this.call;
    return {
      shown: redact(kept, scope, scope.rowType(access.className)) as ParseRow,
      withheld: names.filter((name) => !isReadable(name)),
    };
  }

  private enter(className: unknown, permission: ClassOperation): ClassAccess {
    return admitWrite(this.call, className, permission);
  }

  private async planFields(
    access: ClassAccess,
    fields: unknown,
    operation: 'create' | 'update',
  ): Promise<WritePlan> {
    const { scope, agent } = this.call;
    const plan = planWrite(fields, {
      agent,
      access,
      policy: scope.classPolicy(access.className),
      operation,
      tenant: this.rules.tenant(access.className),
      filter: operation === 'create' ? await this.rules.filter(access.className) : undefined,
      indexes: access.masks ? await everyIndex(access, this.call) : [],
      findSchema: (className) => scope.schemas.get(className),
      judgeClass: pointerGate(this.call),
    });
    if (plan.added.size > 0) assertClassPermits(this.call, access.className, 'addField');
    return plan;
  }

  /**
   * The stored row must exist for this agent and belong to its tenant. The verified conditions are also the condition of the
   * write itself: a row that changed its owner in between stays unchanged.
   */
  private async ownRow(
    access: ClassAccess,
    objectId: string,
    change: 'update' | 'delete',
  ): Promise<OwnRow & { readonly row: ParseRow }> {
    const { row, ...found } = await this.findOwn(access, objectId, change);
    if (row) return { ...found, row };
    throw new Refused(await this.rules.noSuchRow(access.className, [objectId]));
  }

  /** The same for a write that needs nothing of the row. Where the store looks at the row itself, it is not read here. */
  private async admitOwn(
    access: ClassAccess,
    objectId: string,
    operation: 'update' | 'delete',
  ): Promise<Pick<Writes['update']['asked'], 'where' | 'admits'>> {
    if (!this.call.ids.readsBefore) return { where: (await this.ownRow(access, objectId, operation)).where };
    const { tenant, where } = await this.rules.predicate(access.className, { canonical: false, operation });
    return { where, ...(tenant && { admits: (row: ParseRow) => isOwnRow(tenant, row) }) };
  }

  private async findOwn(
    { className }: ClassAccess,
    objectId: string,
    operation: 'get' | 'update' | 'delete',
  ): Promise<OwnRow> {
    // A caller may have the right to write a row that it may not read: the constraint contains the row's rights, and the read
    // uses the operator's authority.
    const { tenant, where } = await this.rules.predicate(className, { canonical: false, operation });
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
  private async present(row: ParseRow, access: ClassAccess): Promise<ParseRow> {
    const { scope } = this.call;
    if (scope.rights.unlimited) return presentRow(row, access, this.call);
    const id = String(row['objectId']);
    const [readable] = await readAsCaller(this.call, access.className, id);
    return readable ?? Object.fromEntries(ALWAYS_KEEP.map((name) => [name, row[name]]));
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

const dateValue = (iso: string) => ({ __type: 'Date', iso });

/** Milliseconds among which a stamp ahead of the clock is chosen. */
const STAMPS_AHEAD = 1_000;

/**
 * Now, and later than the stamp that the row has. Where that one is ahead of the clock, every writer would choose the next
 * millisecond: a random one distinguishes this attempt from others.
 */
function stampAfter(before: string): string {
  const now = Date.now();
  const least = Date.parse(before) + 1;
  return new Date(now >= least ? now : least + randomInt(STAMPS_AHEAD)).toISOString();
}

function readId(objectId: unknown, { schema }: ClassAccess): string {
  if (objectId === undefined || objectId === null || objectId === '')
    throw new Refused(refusals.invalidArgument('missing required argument: object_id'));
  if (isIdFor(schema, objectId)) return objectId;
  throw new Refused(refusals.invalidArgument(idForm(schema)));
}
